package collective_test

import (
	"encoding/json"
	"math"
	"net/netip"
	"testing"
	"time"

	"headgate.dev/headgate/collective"
)

// congested returns connections that need 4 and 2 of 10 Mbit/s, at 10 s of congestion in which there are 4 Mbit/s for them.
func congested() *bottleneck {
	b := &bottleneck{rate: 10e6, base: 20 * time.Millisecond, room: 1e6, of: map[collective.ID]*source{1: {offered: 4e6}, 2: {offered: 2e6}}}
	b.run(20 * time.Second)
	b.greedy()
	b.rivalQueueFactor = 6e6
	b.run(10 * time.Second)
	return b
}

// ratio returns the rate of connection a to that of connection b over 10 s.
func (b *bottleneck) ratio(first, second collective.ID) float64 {
	got := b.rates(10 * time.Second)
	return got[first] / got[second]
}

// A process that starts under congestion goes on with what the one before has learned.
func TestInheritRestart(t *testing.T) {
	for _, inherits := range []bool{true, false} {
		b := congested()
		before := b.control
		b.control = collective.Control{}
		for id, s := range b.of {
			s.cap = collective.Cap{}
			if inherits {
				b.control.Inherit(id, before.Need(id))
			}
		}
		b.run(5 * time.Second)
		got := b.ratio(1, 2)
		if off := math.Abs(got/2-1) > 0.07; off == inherits {
			t.Errorf("with what was learned %v: %.2f to 1 after 5 s, want 2 if it is known", inherits, got)
		}
		if inherits && b.control.Base(1) > 25*time.Millisecond {
			t.Errorf("the round trip without a queue is %v, want 20 ms", b.control.Base(1))
		}
	}
}

// A connection in the place of one that ended has its need, also under congestion.
func TestInheritReconnect(t *testing.T) {
	b := congested()
	need := b.control.Need(1)
	b.control.Remove(1)
	delete(b.of, 1)
	b.control.Inherit(3, need)
	b.of[3] = &source{offered: math.Inf(1)}
	b.run(5 * time.Second)
	if got := b.ratio(3, 2); math.Abs(got/2-1) > 0.07 {
		t.Errorf("%.2f to 1, want 2", got)
	}
}

// A connection is held to what it is taken to need, until its own need is known.
func TestAssume(t *testing.T) {
	b := congested()
	b.control.Assume(3, 6e6, 20*time.Millisecond)
	b.of[3] = &source{offered: math.Inf(1)}
	b.run(5 * time.Second)
	if got := b.ratio(3, 2); math.Abs(got/3-1) > 0.07 {
		t.Errorf("%.2f to 1, want 3", got)
	}
	b.rivalQueueFactor = 0
	for id, rate := range map[collective.ID]float64{1: 4e6, 2: 2e6, 3: 1e6} {
		b.of[id].offered, b.of[id].backlog = rate, 0
	}
	b.run(30 * time.Second)
	if got, _ := b.control.LearnedRate(3); math.Abs(float64(got)/1e6-1) > 0.05 {
		t.Errorf("its own need is %v, want 1 Mbit/s", got)
	}
}

func TestNeeds(t *testing.T) {
	const second = time.Second
	db := collective.Role{Rule: collective.Rule{RemotePort: collective.Ports{From: 5432, To: 5433}}, Port: 5432, Remote: netip.MustParseAddr("10.0.0.1")}
	other := db
	other.Port = 5433
	need := func(rate float64) collective.Need {
		return collective.Need{Bits: rate * 20, Seconds: 20, Base: 7 * time.Millisecond}
	}
	rate := func(n collective.Need) float64 { return n.Bits / n.Seconds }
	var n collective.Needs
	if _, ok := n.Inherit(db, 0); ok {
		t.Error("something is inherited from nobody")
	}
	if r, _ := n.Assume(db, 1); r != 0 {
		t.Errorf("%v is assumed of nothing", r)
	}
	// The one that ended last is replaced first.
	n.Leave(db, need(4e6), second)
	n.Leave(db, need(1e6), 2*second)
	for _, want := range []float64{1e6, 4e6} {
		if got, ok := n.Inherit(db, 3*second); !ok || rate(got) != want || got.Base != 7*time.Millisecond {
			t.Errorf("inherited is %+v, %v, want %v", got, ok, want)
		}
	}
	// Without one: the mean, of the role or of the rule.
	for _, r := range []collective.Role{db, other} {
		got, base := n.Assume(r, 3)
		if math.Abs(got/2.1e6-1) > 0.2 {
			t.Errorf("assumed is %v, want about 2.5 Mbit/s", got)
		}
		if want := r == db; (base != 0) != want {
			t.Errorf("%+v: the round trip is %v", r, base)
		}
	}
	// Those that there are count as well.
	n.SetAlive(func(yield func(collective.Role, collective.Need)) {
		for range 100 {
			yield(other, need(10e6))
		}
	})
	if got, _ := n.Assume(other, 1); got != 10e6 {
		t.Errorf("assumed is %v, want 10 Mbit/s", got)
	}
	// Needs expire.
	n.Leave(db, need(4e6), 10*second)
	if _, ok := n.Inherit(db, 10*second+2*time.Hour); ok {
		t.Error("a need of two hours ago is inherited")
	}
	// An unknown need is not kept.
	n.Leave(db, collective.Need{Bits: 1e6, Seconds: 1}, 20*second)
	if _, ok := n.Inherit(db, 20*second); ok {
		t.Error("the need of a connection of a second is inherited")
	}
}

// Short connections of a role need together what they carry without congestion.
func TestNeedsOfAPool(t *testing.T) {
	role := collective.Role{Port: 80, Accepted: true}
	var n collective.Needs
	controlled := false
	for s := range 60 {
		for range 20 {
			n.Short(role, 1e5, time.Duration(s)*time.Second)
		}
		if s > 30 {
			controlled = true // they carry half of it in twice the time
		}
		n.Pass(time.Second, func(collective.Role) bool { return controlled })
	}
	for _, connections := range []int{1, 4, 50} {
		if got, _ := n.Assume(role, connections); math.Abs(got*float64(connections)/2e6-1) > 0.01 {
			t.Errorf("each of %d needs %v, want 2 Mbit/s in all", connections, got)
		}
	}
	// It is stored with the rest.
	n.Leave(role, collective.Need{Bits: 3e6, Seconds: 3}, time.Minute)
	text, err := json.Marshal(n.Kept())
	if err != nil {
		t.Fatal(err)
	}
	var kept []collective.KeptRole
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	again := collective.NewNeeds(kept)
	if got, _ := again.Assume(role, 1); math.Abs(got/2e6-1) > 0.01 {
		t.Errorf("after storing it is %v", got)
	}
	if got, ok := again.Inherit(role, time.Minute); !ok || got.Bits != 3e6 || got.Seconds != 3 {
		t.Errorf("after storing %+v is inherited, %v", got, ok)
	}
}

// The number of roles is bounded, and the oldest is forgotten.
func TestNeedsOfManyRoles(t *testing.T) {
	var n collective.Needs
	role := func(i int) collective.Role {
		return collective.Role{Port: 80, Remote: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}
	}
	for i := range 5000 {
		n.Leave(role(i), collective.Need{Bits: 3e6, Seconds: 3}, time.Duration(i)*time.Millisecond)
	}
	if _, ok := n.Inherit(role(0), 5*time.Second); ok {
		t.Error("the oldest role is kept")
	}
	if _, ok := n.Inherit(role(4999), 5*time.Second); !ok {
		t.Error("the newest role is forgotten")
	}
	if got := len(n.Kept()); got > 4096 {
		t.Errorf("%d roles are kept", got)
	}
}
