package collective_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"headgate.dev/headgate/collective"
)

// pairs counts pairs of connections that are found to share a bottleneck.
type pairs struct{ right, wrong, missed int }

func (p *pairs) count(groups [][]collective.ID, of map[collective.ID]int) {
	found := map[[2]collective.ID]bool{}
	for _, g := range groups {
		for i, a := range g {
			for _, b := range g[i+1:] {
				found[[2]collective.ID{a, b}] = true
			}
		}
	}
	for a := range of {
		for b := range of {
			if a >= b {
				continue
			}
			switch share := of[a] == of[b]; {
			case share && found[[2]collective.ID{a, b}]:
				p.right++
			case share:
				p.missed++
			case found[[2]collective.ID{a, b}]:
				p.wrong++
			}
		}
	}
}

func (p pairs) precision() float64 { return float64(p.right) / float64(max(p.right+p.wrong, 1)) }
func (p pairs) recall() float64    { return float64(p.right) / float64(max(p.right+p.missed, 1)) }

// Connections behind bottlenecks that are drawn are told apart by their delays.
func TestBottlenecks(t *testing.T) {
	var ours, rfc pairs
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 8382))
		var found collective.Bottlenecks
		of := map[collective.ID]int{}
		var sims []*sim
		for q := range 2 + rng.IntN(2) {
			rate := 5e6 * math.Pow(10, rng.Float64())
			s := &sim{rate: rate, delay: time.Duration(10+rng.IntN(70)) * time.Millisecond, rng: rng, control: &collective.Control{}, watch: found.Observe}
			s.room = max(int(rate*s.delay.Seconds()/packet*(0.5+1.5*rng.Float64())), 16)
			for range 1 + rng.IntN(3) {
				id := collective.ID(len(of) + 1)
				of[id] = q
				c := s.newTCP(id, low)
				c.maxWindow, c.observed, c.sack = math.Inf(1), true, true
				c.backlog = math.Inf(1)
				s.after(time.Duration(rng.IntN(1000))*time.Millisecond, c.send)
			}
			for range rng.IntN(3) {
				c := s.newTCP(0, low)
				c.maxWindow, c.backlog, c.sack = math.Inf(1), math.Inf(1), true
				s.after(time.Duration(rng.IntN(1000))*time.Millisecond, c.send)
			}
			if rng.IntN(2) == 0 {
				s.files(low, 0.2*rate, time.Hour)
			}
			sims = append(sims, s)
		}
		for now := time.Duration(0); now < 40*time.Second; now += 50 * time.Millisecond {
			for _, s := range sims {
				s.run(now)
			}
		}
		ours.count(found.Groups(), of)
		rfc.count(found.GroupsRFC8382(), of)
	}
	t.Logf("precision %.2f and recall %.2f; RFC 8382 alone %.2f and %.2f; %+v, %+v", ours.precision(), ours.recall(), rfc.precision(), rfc.recall(), ours, rfc)
	if ours.precision() < 0.95 || ours.recall() < 0.9 {
		t.Errorf("precision %.2f, recall %.2f, want 0.95 and 0.9", ours.precision(), ours.recall())
	}
}
