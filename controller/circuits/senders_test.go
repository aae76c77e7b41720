package circuits

import (
	"testing"
	"time"

	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// What circuits offer and have passed, in parts of their limit, and whether their senders then are taken to be unresponsive.
func TestSenders(t *testing.T) {
	udp, tcp := program.Circuit{Flows: []program.Traffic{{Protocol: 17}}}, program.Circuit{Flows: []program.Traffic{{Protocol: 6}}}
	both, rest := program.Circuit{Flows: []program.Traffic{{Protocol: 6}, {Protocol: 17}}}, program.Circuit{Unreserved: true}
	greedy, policed, below := [2]float64{2, 1}, [2]float64{0.9, 0.88}, [2]float64{0.5, 0.5}
	for _, c := range []struct {
		name   string
		of     program.Circuit
		cycles [][2]float64
		want   bool
	}{
		{"UDP", udp, [][2]float64{policed, policed, below}, true},
		{"TCP", tcp, [][2]float64{greedy, greedy, greedy, greedy}, false},
		{"any protocol, at first", both, nil, false},
		{"layer 2, at first", program.Circuit{}, nil, false},
		{"the rest, at first", rest, nil, true},
		{"the rest, TCP", rest, [][2]float64{policed}, false},
		{"the rest, below its limit", rest, [][2]float64{below, below}, true},
		{"the rest, little above its limit", rest, [][2]float64{{1.02, 1}, {1.02, 1}}, true},
		{"any protocol, greedy", both, [][2]float64{greedy, greedy, greedy, greedy, greedy}, true},
		{"any protocol, the overshoot of slow start", both, [][2]float64{greedy, greedy, greedy, policed, greedy, greedy, greedy}, false},
		{"TCP with a full bucket", rest, [][2]float64{policed, {1.1, 1.1}, {1.1, 1.09}, {1.1, 1.08}, {1.1, 1.1}, {1.1, 1.1}}, false},
		{"greedy, then TCP", both, [][2]float64{greedy, greedy, greedy, greedy, greedy, policed}, false},
	} {
		s := sendersOf(c.of)
		for _, part := range c.cycles {
			before := s.unresponsive
			r := live.CircuitReading{Interval: time.Second, Offered: unit.Rate(part[0] * 1e6), Passed: unit.Rate(part[1] * 1e6)}
			if turned := s.observe(r, unit.Mbit); turned != (s.unresponsive != before) {
				t.Errorf("%s: turned is %v", c.name, turned)
			}
		}
		if s.unresponsive != c.want {
			t.Errorf("%s: unresponsive is %v", c.name, s.unresponsive)
		}
	}
}

// TCP that is not reserved has the burst that it needs after one cycle, also if no rate changes, and greedy senders lose it.
func TestLoopSenders(t *testing.T) {
	p := &plant{now: time.Now(), sums: map[uint32]live.CircuitReading{}, offers: map[string]unit.Rate{}}
	b := &book{top: network(t, 1000)}
	b.Book, _ = reserve.NewBook(b.top, reserve.Limits{})
	if _, err := b.Admit(reserve.Request{
		ID: reserve.ID{Name: "video"}, Source: end("1", port(1, 1)), Destination: end("3", port(2, 1)), Class: 1, Forward: 20 * unit.Mbit, Duration: time.Hour,
		Flows: []reserve.Flow{{Protocol: 17}},
	}, p.now); err != nil {
		t.Fatal(err)
	}
	l := New(p, &noAgents{}, b, Options{Scheme: &share.StaticMeters{}, Term: 1, Now: func() time.Time { return p.now }})
	l.Update()
	expect := func(when string, seconds int, offers unit.Rate, want bool) {
		t.Helper()
		p.offers[rest] = offers
		for range seconds {
			p.run()
			for _, c := range p.all {
				if c.Name == rest && offers < p.limits[c.Number].Rate {
					r := p.sums[c.Number] // a meter drops what comes in bursts
					r.PassedBytes -= 10_000
					p.sums[c.Number] = r
				}
			}
			l.Step(t.Context())
		}
		for _, c := range p.all {
			if p.limits[c.Number].Unresponsive != (c.Name != rest || want) {
				t.Errorf("%s, %s has the limit %+v", when, c.Name, p.limits[c.Number])
			}
		}
	}
	expect("at first", 0, 0, true)
	expect("with TCP", 2, 15*unit.Mbit, false)
	expect("in overload for four readings", 4, 60*unit.Mbit, false)
	expect("in overload", 1, 60*unit.Mbit, true)
	if p.sets != 1 {
		t.Errorf("the circuits were set %d times, want limits alone to change", p.sets)
	}
}
