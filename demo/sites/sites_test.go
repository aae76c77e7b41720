package sites

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// The promises of each network can be kept: what the steps reserve at the same time fits into what the paths give.
func TestPromisesFit(t *testing.T) {
	for seed := range uint64(500) {
		n := New(seed)
		reservable := n.Limiter * Reservable / 100
		offered := reservable * 105 / 100 // what was measured may differ by 5 %
		switch south := n.South.Port * Reservable / 100; {
		case n.Ask() <= offered:
			t.Errorf("seed %d: %v is asked for, which is granted: %v", seed, n.Ask(), reservable)
		case offered/2+n.Upload()/2 > reservable*95/100:
			t.Errorf("seed %d: the north path has %v, for half of %v and half of %v", seed, reservable, offered, n.Upload())
		case n.Upload()/2 > south || offered/2 > south:
			t.Errorf("seed %d: the south path has %v, for half of %v or half of %v", seed, south, n.Upload(), offered)
		case n.Limiter*5 < n.North.Port*2:
			t.Errorf("seed %d: %v is below 40 %% of %v: what is measured is not put in force", seed, n.Limiter, n.North.Port)
		}
		if n != New(seed) {
			t.Errorf("seed %d: another network", seed)
		}
	}
}

func TestTopology(t *testing.T) {
	for seed := range uint64(20) {
		if err := New(seed).Topology("t").Validate(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// The picture and the document of the network are as documented.
func TestText(t *testing.T) {
	n := New(1)
	port := func(at, to string) uint32 { return uint32(at[1]-'0')*10 + uint32(to[1]-'0') }
	text := n.Picture() + "\n\n" + n.Document(port, func(host string) string { return "(" + host + ")" }, "apply_measured: 40%")
	for line := range strings.Lines(n.Picture()) {
		if len([]rune(line)) > 81 {
			t.Errorf("a line of %d cells: %s", len([]rune(line)), line)
		}
	}
	for _, p := range []Promise{Least.New("a", "the program without half of its rate", "Mbit/s", 22.5, 22.4), Most.New("b", "without the half of its traffic", "s", 1, 0.3), Around.New("c", "capacity of the limited link", "Mbit/s", 30, 31.4)} {
		text += fmt.Sprintln(p)
		if n := len(p.String()); n > 78 {
			t.Errorf("a line of %d cells: %s", n, p)
		}
	}
	golden.Compare(t, "testdata/network.txt", text)
}

func TestInterruption(t *testing.T) {
	var all []traffic.Interval
	for _, mbit := range []float64{10, 4, 10, 3, 0, 2, 10, 0} {
		all = append(all, traffic.Interval{Seconds: 0.1, DeliveredL2Bits: mbit * 1e5})
	}
	if got := Interruption(all, 5e6); got.Round(time.Millisecond) != 300*time.Millisecond {
		t.Errorf("%v, want 300 ms", got)
	}
}

// What lends and takes back is a fifth and all of what is reserved.
func TestLending(t *testing.T) {
	n := New(1)
	for name, f := range map[string]traffic.Flow{"once": n.Lending(20*unit.Mbit, time.Second)[0], "repeated": Repeated(20*unit.Mbit, 40*time.Second)[0]} {
		for i, s := range f.Schedule {
			if want := []unit.Rate{20 * unit.Mbit, 4 * unit.Mbit}[i%2]; s.Rate != want || i > 0 && s.At <= f.Schedule[i-1].At {
				t.Errorf("%s: step %d is %+v, want a rate of %v", name, i, s, want)
			}
		}
	}
}
