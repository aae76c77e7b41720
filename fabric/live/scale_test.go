package live

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// randomCables returns a connected network with so many cables, none twice.
func randomCables(switches, cables int) (out [][2]int) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[[2]int]bool{}
	add := func(a, b int) {
		c := [2]int{min(a, b), max(a, b)}
		if a != b && !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	for n := 1; n < switches; n++ {
		add(r.IntN(n), n)
	}
	for len(out) < cables {
		add(r.IntN(switches), r.IntN(switches))
	}
	return out
}

// A network of 200 switches and 800 cables is found and connected within 3 s of virtual time.
func TestManySwitches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const switches, cables = 200, 400
		w := newWorld(t, switches, randomCables(switches, cables))
		w.settle(3 * time.Second)
		if got := len(w.live.Plan().Topology.Links()); got != 2*cables {
			t.Errorf("%d links, want %d", got, 2*cables)
		}
	})
}
