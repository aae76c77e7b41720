package collective_test

import (
	"maps"
	"math"
	"testing"
	"time"

	"headgate/collective"
	"headgate/unit"
)

// path makes readings of connections in virtual time, one a round trip.
type path struct {
	t     *testing.T
	seed  collective.Seed
	now   time.Duration
	acked map[collective.ID]float64
}

// shows is what a connection's readings say for a while.
type shows struct {
	mbit    float64
	backlog unit.Bytes
	event   collective.Event // of the first reading
}

// run lets time pass with a round trip of so long.
func (p *path) run(took, rtt time.Duration, of map[collective.ID]shows) {
	if p.acked == nil {
		p.acked = map[collective.ID]float64{}
	}
	first := true
	for end := p.now + took; p.now < end; first = false {
		p.now += rtt
		for id, s := range of {
			p.acked[id] += s.mbit * 1e6 / 8 * rtt.Seconds()
			r := collective.Reading{At: p.now, RTT: rtt, Acked: uint64(p.acked[id]), Backlog: s.backlog}
			if first {
				r.Events = s.event
			}
			p.seed.Observe(id, r)
		}
		p.seed.Caps(p.now)
	}
}

const (
	db1 collective.ID = 1
	db2 collective.ID = 2
)

// calm is DB1 and DB2 of the seed (IV-A) while all is well.
var calm = map[collective.ID]shows{db1: {mbit: 4.8}, db2: {mbit: 2.4}}

// learnt is a path that has been calm for as long as the seed's.
func learnt(t *testing.T) *path {
	p := &path{t: t}
	p.run(25*time.Second, 20*time.Millisecond, calm)
	for id, s := range calm {
		if got, ok := p.seed.Required(id); !ok || math.Abs(float64(got)/(s.mbit*1e6)-1) > 0.01 {
			t.Fatalf("connection %d needs %v, want %v Mbit/s", id, got, s.mbit)
		}
	}
	if p.seed.Controlling() || len(maps.Collect(p.seed.Caps(p.now))) > 0 {
		t.Fatal("it is controlled while all is well")
	}
	return p
}

// The set is controlled as the mean of four round trips passes 1.4 of what it was, or at
// once after an event of any connection, and no sooner (III-B-1).
func TestSeedSetEvent(t *testing.T) {
	p := learnt(t)
	p.run(time.Second, 27*time.Millisecond, calm)
	if p.seed.Controlling() {
		t.Error("27 ms for 20 are no congestion")
	}
	p = learnt(t)
	p.run(3*30*time.Millisecond, 30*time.Millisecond, calm)
	if p.seed.Controlling() {
		t.Error("three round trips decide")
	}
	p.run(30*time.Millisecond, 30*time.Millisecond, calm)
	if !p.seed.Controlling() {
		t.Error("four round trips of 1.5 do not")
	}
	for _, e := range []collective.Event{collective.ECN, collective.Timeout, collective.FastRetransmit} {
		p := learnt(t)
		p.run(20*time.Millisecond, 20*time.Millisecond, map[collective.ID]shows{db2: {mbit: 2.4, event: e}})
		if !p.seed.Controlling() {
			t.Errorf("event %d of one connection is not the set's", e)
		}
	}
}

// What is needed is frozen while the set is controlled, and windows follow equation 1:
// both at 3 Mbit/s with 50 ms give min(1.2 * 3, 3.6) * 50 ms * lambda_ri / 3.6.
func TestSeedEquation1(t *testing.T) {
	p := learnt(t)
	p.run(10*time.Second, 50*time.Millisecond, map[collective.ID]shows{db1: {mbit: 3, backlog: 1e6}, db2: {mbit: 3, backlog: 1e6}})
	for id, s := range calm {
		if got, _ := p.seed.Required(id); math.Abs(float64(got)/(s.mbit*1e6)-1) > 0.03 {
			t.Errorf("connection %d needs %v under congestion, want still %v Mbit/s", id, got, s.mbit)
		}
	}
	caps := maps.Collect(p.seed.Caps(p.now))
	for id, want := range map[collective.ID]float64{db1: 3.6e6 * 0.050 * 4.8 / 3.6 / 8, db2: 3.6e6 * 0.050 * 2.4 / 3.6 / 8} {
		if got := float64(caps[id].Window); math.Abs(got/want-1) > 0.03 {
			t.Errorf("connection %d has a window of %.0f, want %.0f", id, got, want)
		}
	}
	p.run(10*time.Second, 50*time.Millisecond, map[collective.ID]shows{db1: {mbit: 2, backlog: 1e6}, db2: {mbit: 1, backlog: 1e6}})
	caps = maps.Collect(p.seed.Caps(p.now))
	if got, want := float64(caps[db1].Window), 1.2*1.5e6*0.050*4.8/3.6/8; math.Abs(got/want-1) > 0.03 {
		t.Errorf("at 1.5 Mbit/s on average the window is %.0f, want %.0f", got, want)
	}
}

// Control ends for all at once (III-B-3): after the hump, if one comes, and some calm; if
// none comes, later; not while one connection still waits, unless it is idle.
func TestSeedExit(t *testing.T) {
	congested := func() *path {
		p := learnt(t)
		p.run(5*time.Second, 50*time.Millisecond, map[collective.ID]shows{db1: {mbit: 3, backlog: 1e6}, db2: {mbit: 3, backlog: 1e6}})
		return p
	}
	const back = 20 * time.Millisecond
	hump := map[collective.ID]shows{db1: {mbit: 6, backlog: 1e6}, db2: {mbit: 3.5, backlog: 1e6}}

	p := congested()
	p.run(2*time.Second, back, hump)
	if !p.seed.Controlling() {
		t.Error("it ends on the hump")
	}
	p.run(2*time.Second, back, calm)
	if p.seed.Controlling() {
		t.Error("it does not end after the hump")
	}

	p = congested()
	p.run(2*time.Second, back, calm)
	if !p.seed.Controlling() {
		t.Error("it does not wait for a hump")
	}
	p.run(2*time.Second, back, calm)
	if p.seed.Controlling() {
		t.Error("it waits for a hump for ever")
	}

	p = congested()
	p.run(2*time.Second, back, calm)
	p.run(4*time.Second, 40*time.Millisecond, calm)
	if !p.seed.Controlling() {
		t.Error("it ends although the round trip rose again")
	}

	p = congested()
	for range 300 {
		p.run(back, back, map[collective.ID]shows{db1: calm[db1]})
		p.run(back, 60*time.Millisecond, map[collective.ID]shows{db2: {mbit: 1, backlog: 1e6}})
	}
	if !p.seed.Controlling() {
		t.Error("one connection's congestion is over, and the set is let go")
	}
	p.run(5*time.Second, back, map[collective.ID]shows{db1: calm[db1]})
	if p.seed.Controlling() {
		t.Error("an idle connection holds the other back")
	}
}

// A connection that comes under congestion is not capped by what it got there, and one
// that ended is in no average.
func TestSeedComeAndGo(t *testing.T) {
	p := learnt(t)
	both := map[collective.ID]shows{db1: {mbit: 3, backlog: 1e6}, db2: {mbit: 3, backlog: 1e6}, 3: {mbit: 1}}
	p.run(2*time.Second, 50*time.Millisecond, both)
	if caps := maps.Collect(p.seed.Caps(p.now)); len(caps) != 2 {
		t.Errorf("capped are %v, want connections 1 and 2", caps)
	}
	p.seed.Remove(db2)
	delete(both, db2)
	p.run(2*time.Second, 50*time.Millisecond, both)
	caps := maps.Collect(p.seed.Caps(p.now))
	if got, want := float64(caps[db1].Window), 1.2*3e6*0.050/8; len(caps) != 1 || math.Abs(got/want-1) > 0.03 {
		t.Errorf("alone it has %v, want %.0f", caps, want)
	}
}
