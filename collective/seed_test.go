package collective_test

import (
	"maps"
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/unit"
)

// path makes readings of connections in virtual time, one per round trip.
type path struct {
	t     *testing.T
	seed  collective.PaperControl
	now   time.Duration
	acked map[collective.ID]float64
}

// shows is the content of a connection's readings for a while.
type shows struct {
	mbit    float64
	backlog unit.Bytes
	event   collective.Event // of the first reading
}

// run advances the time, with a constant round trip.
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

// calm is DB1 and DB2 of the seed (IV-A) without congestion.
var calm = map[collective.ID]shows{db1: {mbit: 4.8}, db2: {mbit: 2.4}}

// minLearning returns a path that has been calm for as long as the seed's.
func minLearning(t *testing.T) *path {
	p := &path{t: t}
	p.run(25*time.Second, 20*time.Millisecond, calm)
	for id, s := range calm {
		if got, ok := p.seed.LearnedRate(id); !ok || math.Abs(float64(got)/(s.mbit*1e6)-1) > 0.01 {
			t.Fatalf("learned rate of connection %d is %v, want %v Mbit/s", id, got, s.mbit)
		}
	}
	if p.seed.Controlling() || len(maps.Collect(p.seed.Caps(p.now))) > 0 {
		t.Fatal("the set is controlled without congestion")
	}
	return p
}

// The set is controlled when the mean of four round trips exceeds 1.4 of the base, or at
// once after an event of any connection, and no earlier (III-B-1).
func TestSeedSetEvent(t *testing.T) {
	p := minLearning(t)
	p.run(time.Second, 27*time.Millisecond, calm)
	if p.seed.Controlling() {
		t.Error("a round trip of 27 ms instead of 20 is congestion")
	}
	p = minLearning(t)
	p.run(3*30*time.Millisecond, 30*time.Millisecond, calm)
	if p.seed.Controlling() {
		t.Error("three long round trips are congestion")
	}
	p.run(30*time.Millisecond, 30*time.Millisecond, calm)
	if !p.seed.Controlling() {
		t.Error("four round trips of 1.5 times the base are no congestion")
	}
	for _, e := range []collective.Event{collective.ECN, collective.Timeout, collective.FastRetransmit} {
		p := minLearning(t)
		p.run(20*time.Millisecond, 20*time.Millisecond, map[collective.ID]shows{db2: {mbit: 2.4, event: e}})
		if !p.seed.Controlling() {
			t.Errorf("event %d of one connection does not start control", e)
		}
	}
}

// Learned rates are frozen while the set is controlled, and windows follow equation 1:
// both at 3 Mbit/s with 50 ms give min(1.2 * 3, 3.6) * 50 ms * lambda_ri / 3.6. lambda_a is the connection's own, or the mean as an option. Eta is 1.15 to 1.25.
func TestSeedEquation1(t *testing.T) {
	p := minLearning(t)
	p.run(10*time.Second, 50*time.Millisecond, map[collective.ID]shows{db1: {mbit: 3, backlog: 1e6}, db2: {mbit: 3, backlog: 1e6}})
	for id, s := range calm {
		if got, _ := p.seed.LearnedRate(id); math.Abs(float64(got)/(s.mbit*1e6)-1) > 0.03 {
			t.Errorf("learned rate of connection %d is %v under congestion, want %v Mbit/s", id, got, s.mbit)
		}
	}
	caps := maps.Collect(p.seed.Caps(p.now))
	for id, want := range map[collective.ID]float64{db1: 3.6e6 * 0.050 * 4.8 / 3.6 / 8, db2: 3.6e6 * 0.050 * 2.4 / 3.6 / 8} {
		if got := float64(caps[id].Window); math.Abs(got/want-1) > 0.03 {
			t.Errorf("window of connection %d is %.0f, want %.0f", id, got, want)
		}
	}
	p.run(10*time.Second, 50*time.Millisecond, map[collective.ID]shows{db1: {mbit: 2, backlog: 1e6}, db2: {mbit: 1, backlog: 1e6}})
	for _, eta := range []float64{1.15, 1.2, 1.25} {
		p.seed.Eta = eta
		for _, mean := range []bool{false, true} {
			p.seed.MeanAvailable = mean
			caps := maps.Collect(p.seed.Caps(p.now))
			for id, own := range map[collective.ID]float64{db1: 2e6, db2: 1e6} {
				if mean {
					own = 1.5e6
				}
				if got, want := float64(caps[id].Window), min(eta*own, 3.6e6)*0.050*calm[id].mbit/3.6/8; math.Abs(got/want-1) > 0.03 {
					t.Errorf("window of connection %d with eta %v, mean %v, is %.0f, want %.0f", id, eta, mean, got, want)
				}
			}
		}
	}
}

// Control ends for all at once (III-B-3): after a hump and some calm; later if there is
// no hump; and not while one connection still has backlog, unless it is idle.
func TestSeedExit(t *testing.T) {
	congested := func() *path {
		p := minLearning(t)
		p.run(5*time.Second, 50*time.Millisecond, map[collective.ID]shows{db1: {mbit: 3, backlog: 1e6}, db2: {mbit: 3, backlog: 1e6}})
		return p
	}
	const back = 20 * time.Millisecond
	hump := map[collective.ID]shows{db1: {mbit: 6, backlog: 1e6}, db2: {mbit: 3.5, backlog: 1e6}}

	p := congested()
	p.run(2*time.Second, back, hump)
	if !p.seed.Controlling() {
		t.Error("control ends during the hump")
	}
	p.run(2*time.Second, back, calm)
	if p.seed.Controlling() {
		t.Error("control does not end after the hump")
	}

	p = congested()
	p.run(2*time.Second, back, calm)
	if !p.seed.Controlling() {
		t.Error("control ends without waiting for a hump")
	}
	p.run(2*time.Second, back, calm)
	if p.seed.Controlling() {
		t.Error("control does not end without a hump")
	}

	p = congested()
	p.run(2*time.Second, back, calm)
	p.run(4*time.Second, 40*time.Millisecond, calm)
	if !p.seed.Controlling() {
		t.Error("control ends although the round trip rose again")
	}

	p = congested()
	for range 300 {
		p.run(back, back, map[collective.ID]shows{db1: calm[db1]})
		p.run(back, 60*time.Millisecond, map[collective.ID]shows{db2: {mbit: 1, backlog: 1e6}})
	}
	if !p.seed.Controlling() {
		t.Error("control ends although one connection is still congested")
	}
	p.run(5*time.Second, back, map[collective.ID]shows{db1: calm[db1]})
	if p.seed.Controlling() {
		t.Error("an idle connection prevents the end of control")
	}
}

// A connection that joins during congestion is not capped by its rate there, and a
// connection that has ended is in no average.
func TestSeedJoinLeave(t *testing.T) {
	p := minLearning(t)
	both := map[collective.ID]shows{db1: {mbit: 3, backlog: 1e6}, db2: {mbit: 3, backlog: 1e6}, 3: {mbit: 1}}
	p.run(2*time.Second, 50*time.Millisecond, both)
	if caps := maps.Collect(p.seed.Caps(p.now)); len(caps) != 2 {
		t.Errorf("caps are %v, want connections 1 and 2", caps)
	}
	p.seed.Remove(db2)
	delete(both, db2)
	p.run(2*time.Second, 50*time.Millisecond, both)
	caps := maps.Collect(p.seed.Caps(p.now))
	if got, want := float64(caps[db1].Window), 1.2*3e6*0.050/8; len(caps) != 1 || math.Abs(got/want-1) > 0.03 {
		t.Errorf("caps of the remaining connection are %v, want %.0f", caps, want)
	}
}
