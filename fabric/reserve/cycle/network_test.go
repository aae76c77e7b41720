package cycle

import (
	"fmt"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// tester is a testing.T, a testing.B or a rapid.T.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// port is port no of switch s.
func port(s fabric.DPID, no fabric.PortNo) fabric.PortID {
	return fabric.PortID{Switch: s, Port: no}
}

// topology makes a network of n switches with meters. Ports 1 to 9 are of hosts, at 100 Gbit/s each. Cable k, between two
// switches, is at port 11+k of both.
func topology(t tester, n int, capacity unit.Rate, cables ...[2]fabric.DPID) *fabric.Topology {
	t.Helper()
	var p fabric.Parts
	for i := range n {
		s := fabric.Switch{ID: fabric.DPID(i + 1), Name: fmt.Sprintf("s%d", i+1)}
		for no := range 9 {
			s.Ports = append(s.Ports, fabric.Port{No: fabric.PortNo(no + 1), Speed: 100 * unit.Gbit})
		}
		p.Switches = append(p.Switches, s)
	}
	for k, c := range cables {
		no := fabric.PortNo(11 + k)
		for _, end := range c {
			s := &p.Switches[end-1]
			s.Ports = append(s.Ports, fabric.Port{No: no})
		}
		id := fabric.LinkID{From: port(c[0], no), To: port(c[1], no)}
		for _, l := range []fabric.LinkID{id, id.Reverse()} {
			p.Links = append(p.Links, fabric.Link{LinkID: l, Capacity: capacity, Cost: 1})
		}
	}
	top, err := fabric.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// metered has meters in all switches.
func metered(top *fabric.Topology) Enforcers {
	e := Enforcers{Meters: map[fabric.DPID]bool{}}
	for _, s := range top.Switches() {
		e.Meters[s.ID] = true
	}
	return e
}

// request asks for an hour from noon between two ports.
func request(name string, class int, from, to fabric.PortID, forward, reverse unit.Rate) reserve.Request {
	return reserve.Request{
		ID: reserve.ID{Name: name}, Class: class, Forward: forward, Reverse: reverse, Start: noon, Duration: time.Hour,
		Source: reserve.Endpoint{Name: "a", At: from}, Destination: reserve.Endpoint{Name: "b", At: to},
	}
}

// admit returns what a book grants.
func admit(t tester, top *fabric.Topology, requests ...reserve.Request) []reserve.Reservation {
	t.Helper()
	b, err := reserve.NewBook(top, reserve.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if _, err := b.Admit(r, noon); err != nil {
			t.Fatal(err)
		}
	}
	return b.All()
}

// plant is a network of points in virtual time: each passes at most its limit, and counts.
type plant struct {
	t       tester
	cycle   *Cycle
	at      Time
	limits  map[FlowID]Limit
	counts  map[FlowID]Reading
	all     Changes // of the latest step
	silent  map[FlowID]bool
	bursts  map[FlowID]unit.Rate // what meters let pass above their limits
	wants   map[FlowID]unit.Rate
	message int
}

func newPlant(t tester, scheme share.Scheme) *plant {
	return &plant{t: t, cycle: New(scheme), at: Time{Wall: noon}, limits: map[FlowID]Limit{}, counts: map[FlowID]Reading{}, silent: map[FlowID]bool{}}
}

// set replaces the network.
func (p *plant) set(n Network) { p.enforce(p.cycle.Set(n, p.at)) }

// enforce applies changes, as points do.
func (p *plant) enforce(ch Changes) {
	p.all = ch
	for _, l := range ch.Removed {
		if p.limits[l.Flow].Point == l.Point {
			delete(p.limits, l.Flow)
		}
	}
	for _, l := range ch.Limits {
		if was, ok := p.limits[l.Flow]; ok && was == l {
			p.t.Errorf("%v: limit %v was in force and is sent again", l.Flow, l.Rate)
		}
		p.limits[l.Flow] = l
		p.message++
	}
}

// reading is what its point has counted of a flow at a moment, if it offered a rate for a time since the cycle before.
func (p *plant) reading(id FlowID, at, took time.Duration, offered unit.Rate) Reading {
	r := p.counts[id]
	r.Flow, r.At, r.Wants = id, at, p.wants[id]
	r.Offered += bytes(offered, took)
	r.Delivered += bytes(min(offered, p.limits[id].Rate+p.bursts[id]), took)
	return r
}

// run lets flows offer rates for a time, and ends the cycle after it.
func (p *plant) run(took time.Duration, offered map[FlowID]unit.Rate) {
	p.at.Elapsed += took
	p.at.Wall = p.at.Wall.Add(took)
	var readings []Reading
	for id := range p.limits {
		r := p.reading(id, p.at.Elapsed, took, offered[id])
		p.counts[id] = r
		if !p.silent[id] {
			readings = append(readings, r)
		}
	}
	p.enforce(p.cycle.Step(p.at, readings))
}

func bytes(rate unit.Rate, took time.Duration) uint64 {
	return uint64(float64(rate) / 8 * took.Seconds())
}

// got is what a flow gets when it offers a rate.
func (p *plant) got(id FlowID, offered unit.Rate) unit.Rate { return min(offered, p.limits[id].Rate) }

func forward(name string) FlowID { return FlowID{Reservation: reserve.ID{Name: name}} }
func enters(at fabric.PortID) FlowID {
	return FlowID{Port: at}
}

// Only the senders of a reservation of UDP alone are taken not to react to drops, in both directions, and not where their host shapes them.
func TestUnresponsive(t *testing.T) {
	top := topology(t, 2, unit.Gbit, [2]fabric.DPID{1, 2})
	udp := []reserve.Flow{{Protocol: 17, Destination: reserve.Ports{First: 5, Last: 6}}}
	for want, flows := range map[string][]reserve.Flow{"any": nil, "udp": udp, "tcp": {{Protocol: 6}}, "both": {{Protocol: 17}, {Protocol: 6}}, "host": udp} {
		r := request("a", 1, port(1, 1), port(2, 1), unit.Mbit, unit.Mbit)
		r.Flows = flows
		c := New(share.NewAdaptive(0))
		e := metered(top)
		if want == "host" {
			e.Hosts = map[fabric.PortID]bool{port(1, 1): true, port(2, 1): true}
		}
		c.Set(Network{Topology: top, Reservations: admit(t, top, r), Enforcers: e}, Time{Wall: noon})
		reserved := c.plan.reserved().Flows
		if len(reserved) != 2 {
			t.Fatalf("%s: %d flows", want, len(reserved))
		}
		for _, f := range reserved {
			if f.Unresponsive != (want == "udp") {
				t.Errorf("%s: flow %s is unresponsive: %v", want, f.Key, f.Unresponsive)
			}
		}
	}
}
