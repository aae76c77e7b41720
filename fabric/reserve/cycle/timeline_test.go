package cycle

import (
	"maps"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// pair is a network of one link of 100 Mbit/s, with a reservation of 40 of it from noon for an hour, and best effort.
func pair(t tester, requests ...reserve.Request) (n Network, qos, be FlowID) {
	top := topology(t, 2, 100*unit.Mbit, [2]fabric.DPID{1, 2})
	if requests == nil {
		requests = []reserve.Request{request("run", 1, port(1, 1), port(2, 1), 40*unit.Mbit, 0)}
	}
	n = Network{Topology: top, Reservations: admit(t, top, requests...), Enforcers: metered(top), Grace: time.Minute}
	n.BestEffort = BestEffort(n, top.NextHops())
	return n, forward("run"), enters(port(1, 3))
}

// settled is a plant of pair after 20 cycles in which the reservation offers a rate, and best effort twice the link.
func settled(t tester, scheme share.Scheme, rate unit.Rate) (p *plant, qos, be FlowID, offered map[FlowID]unit.Rate) {
	n, qos, be := pair(t)
	p = newPlant(t, scheme)
	p.set(n)
	offered = map[FlowID]unit.Rate{qos: rate, be: 200 * unit.Mbit}
	for range 20 {
		p.run(time.Second, offered)
	}
	return p, qos, be, offered
}

// TestReservationBeginsAndEnds: a reservation has its bandwidth from its start to its end, its traffic has a limit as best
// effort until the grace ends, and then none.
func TestReservationBeginsAndEnds(t *testing.T) {
	r := request("run", 1, port(1, 1), port(2, 1), 40*unit.Mbit, 0)
	r.Start, r.Duration = noon.Add(10*time.Second), time.Minute
	n, qos, be := pair(t, r)
	p := newPlant(t, share.NewAdaptive(0))
	p.set(n)
	offered := map[FlowID]unit.Rate{qos: 80 * unit.Mbit, be: 200 * unit.Mbit}
	for second := 1; second < 200; second++ {
		p.run(time.Second, offered)
		limit, has := p.limits[qos]
		switch {
		case second < 10 || second >= 130:
			if has {
				t.Fatalf("second %d: the reservation has a limit of %v", second, limit.Rate)
			}
		case second < 70:
			if !has || limit.Rate < 40*unit.Mbit || limit.Point != (Point{Switch, port(1, 1)}) {
				t.Fatalf("second %d: the reservation has %v at %v", second, limit.Rate, limit.Point)
			}
		case second > 75:
			if got := p.got(qos, offered[qos]) + p.got(be, offered[be]); !has || got > 100*unit.Mbit || got < 95*unit.Mbit {
				t.Fatalf("second %d: in the grace all get %v", second, got)
			}
		}
	}
	if got := p.got(be, offered[be]); got < 95*unit.Mbit {
		t.Errorf("after the grace best effort gets %v", got)
	}
}

// TestSetKeepsState: a reservation that comes leaves the limit of another as it is, and sends nothing for it.
func TestSetKeepsState(t *testing.T) {
	n, qos, be := pair(t)
	p := newPlant(t, share.NewAdaptive(share.DefaultQuantum))
	p.set(n)
	for range 20 {
		p.run(time.Second, map[FlowID]unit.Rate{qos: 20 * unit.Mbit, be: 200 * unit.Mbit})
	}
	before := p.limits[qos]
	if before.Rate > 22*unit.Mbit {
		t.Fatalf("the limit is %v of 20 Mbit/s that are used", before.Rate)
	}
	more := admit(t, n.Topology, request("second", 2, port(1, 2), port(2, 2), 30*unit.Mbit, 0))
	n.Reservations = append(slices.Clone(n.Reservations), more...)
	p.set(n)
	if p.limits[qos] != before || p.limits[forward("second")].Rate < 30*unit.Mbit {
		t.Errorf("after a second reservation the limits are %v and %v", p.limits[qos].Rate, p.limits[forward("second")].Rate)
	}
	for _, l := range p.all.Limits {
		if l.Flow == qos {
			t.Errorf("the limit that stays is sent again")
		}
	}
	if all := p.cycle.Limits(); len(all) != len(p.limits) || !slices.Contains(all, before) {
		t.Errorf("the limits in force are %v, want those of the points: %v", all, p.limits)
	}
}

// TestMissing: a switch that does not answer repeats its latest rates, and is counted; a sleeping flow is not woken by it.
func TestMissing(t *testing.T) {
	p, qos, _, offered := settled(t, share.NewAdaptive(share.DefaultQuantum), 30*unit.Mbit)
	before := p.limits[qos].Rate
	p.silent[qos] = true
	for range 7 {
		p.run(time.Second, offered)
		if p.all.Missing != 1 || p.limits[qos].Rate < 30*unit.Mbit || p.limits[qos].Rate > before+before/20 {
			t.Fatalf("without an answer: %d are missing, the limit is %v, and was %v", p.all.Missing, p.limits[qos].Rate, before)
		}
	}
	delete(p.silent, qos)
	p.run(time.Second, offered) // the true interval is 8 s, in which 30 Mbit/s were offered
	s := p.status(qos)
	if s.Offered != 30*unit.Mbit || s.Missing != 7 || p.all.Missing != 0 {
		t.Errorf("after the answer %v are offered, and %d cycles were without a measurement", s.Offered, s.Missing)
	}
}

// TestNeverMeasured: a flow whose point never answers keeps its reservation.
func TestNeverMeasured(t *testing.T) {
	n, qos, be := pair(t)
	p := newPlant(t, share.NewAdaptive(share.DefaultQuantum))
	p.silent[qos] = true
	p.set(n)
	for range 100 {
		p.run(time.Second, map[FlowID]unit.Rate{be: 200 * unit.Mbit})
		if p.limits[qos].Rate < 40*unit.Mbit {
			t.Fatalf("its limit is %v", p.limits[qos].Rate)
		}
	}
	if s := p.status(qos); s.Missing != 100 {
		t.Errorf("%d cycles without a measurement are counted, want 100", s.Missing)
	}
}

// TestCountersBeginAgain: the rate of a cycle in which a counter went back is not known, and not a huge one.
func TestCountersBeginAgain(t *testing.T) {
	p, qos, _, offered := settled(t, share.NewAdaptive(share.DefaultQuantum), 30*unit.Mbit)
	p.counts[qos] = Reading{}
	p.run(time.Second, offered)
	if s := p.status(qos); s.Offered != 30*unit.Mbit || p.all.Missing != 1 {
		t.Errorf("%v are offered, and %d missing", s.Offered, p.all.Missing)
	}
	p.run(time.Second, offered)
	if s := p.status(qos); s.Offered != 30*unit.Mbit || p.all.Missing != 0 {
		t.Errorf("in the next cycle %v are offered, and %d missing", s.Offered, p.all.Missing)
	}
}

// TestLateCycle: cycles of 0.1 to 9 s measure the same rates, and change nothing.
func TestLateCycle(t *testing.T) {
	n, qos, be := pair(t)
	p := newPlant(t, share.NewAdaptive(share.DefaultQuantum))
	p.set(n)
	offered := map[FlowID]unit.Rate{qos: 30 * unit.Mbit, be: 200 * unit.Mbit}
	for range 22 { // the next probe is later than what follows
		p.run(time.Second, offered)
	}
	before := p.limits[qos].Rate
	for _, took := range []time.Duration{3 * time.Second, 100 * time.Millisecond, 9 * time.Second, time.Second, 137 * time.Millisecond} {
		p.run(took, offered)
		if s := p.status(qos); s.Offered < 30*unit.Mbit-100 || s.Offered > 30*unit.Mbit+100 || p.limits[qos].Rate != before {
			t.Errorf("after %v: offered %v, limit %v, which was %v", took, s.Offered, p.limits[qos].Rate, before)
		}
	}
}

// TestClockJumps: a wall clock that jumps an hour forth and later two hours back changes no limit and ends no reservation:
// all is as in a network whose clock did not jump.
func TestClockJumps(t *testing.T) {
	n, qos, be := pair(t)
	p, steady := newPlant(t, share.NewAdaptive(share.DefaultQuantum)), newPlant(t, share.NewAdaptive(share.DefaultQuantum))
	p.set(n)
	steady.set(n)
	last := noon
	for second := range 300 {
		switch second {
		case 60:
			p.at.Wall = p.at.Wall.Add(time.Hour)
		case 180:
			p.at.Wall = p.at.Wall.Add(-2 * time.Hour)
		}
		offered := map[FlowID]unit.Rate{qos: 30*unit.Mbit + unit.Rate(second/40%2)*20*unit.Mbit, be: 200 * unit.Mbit}
		p.run(time.Second, offered)
		steady.run(time.Second, offered)
		if !maps.Equal(p.limits, steady.limits) {
			t.Fatalf("second %d: the limits are %v, and without the jump %v", second, p.limits, steady.limits)
		}
		now, off := p.cycle.Now()
		if step := now.Sub(last); step < 900*time.Millisecond || step > 1100*time.Millisecond {
			t.Fatalf("the calendar advanced by %v in a second", step)
		}
		if second >= 60 && off.Abs() < 50*time.Minute {
			t.Fatalf("the wall clock is reported as %v off", off)
		}
		last = now
	}
}

// TestCalendar: small corrections are taken at once and never backwards, and a step that stays is caught up with.
func TestCalendar(t *testing.T) {
	var c Calendar
	at := func(elapsed time.Duration, wall time.Duration) time.Duration {
		return c.Advance(Time{elapsed, noon.Add(wall)}).Sub(noon)
	}
	for _, x := range []struct{ elapsed, wall, want time.Duration }{
		{5 * time.Second, 0, 0},
		{6 * time.Second, 1200 * time.Millisecond, 1200 * time.Millisecond},
		{6500 * time.Millisecond, 1100 * time.Millisecond, 1200 * time.Millisecond},
		{7500 * time.Millisecond, 2100 * time.Millisecond, 2100 * time.Millisecond},
		{8500 * time.Millisecond, time.Hour, 3200 * time.Millisecond},
		{7 * time.Second, time.Hour, 3200 * time.Millisecond},
	} {
		if got := at(x.elapsed, x.wall); got != x.want {
			t.Errorf("at %v, with a wall clock of %v, the calendar has %v, want %v", x.elapsed, x.wall, got, x.want)
		}
	}
	elapsed := 7 * time.Second
	for c.Off() > time.Second {
		if elapsed += time.Minute; elapsed > 11*time.Hour {
			t.Fatalf("after %v the calendar is %v behind", elapsed, c.Off())
		}
		at(elapsed, time.Hour+elapsed)
	}
	if elapsed < 9*time.Hour {
		t.Errorf("the calendar took only %v for an hour", elapsed)
	}
}

// TestWakes: a flow that slept has its reservation in the cycle after its first packets, on a full link.
func TestWakes(t *testing.T) {
	n, qos, be := pair(t)
	p := newPlant(t, share.NewAdaptive(share.DefaultQuantum))
	p.set(n)
	for range 30 {
		p.run(time.Second, map[FlowID]unit.Rate{be: 200 * unit.Mbit})
	}
	if p.limits[qos].Rate > unit.Mbit || p.got(be, 200*unit.Mbit) < 98*unit.Mbit {
		t.Fatalf("a sleeping flow holds %v, and best effort has %v", p.limits[qos].Rate, p.limits[be].Rate)
	}
	p.run(time.Second, map[FlowID]unit.Rate{qos: 240 * unit.Kbit, be: 200 * unit.Mbit})
	if p.limits[qos].Rate < 40*unit.Mbit {
		t.Errorf("after its first packets the flow has %v", p.limits[qos].Rate)
	}
	falls := slices.IndexFunc(p.all.Limits, func(l Limit) bool { return l.Flow == be })
	rises := slices.IndexFunc(p.all.Limits, func(l Limit) bool { return l.Flow == qos })
	if falls < 0 || rises < falls {
		t.Errorf("best effort must fall before the flow rises: %v", p.all.Limits)
	}
}

// TestSpare: the bandwidth of a spare path is free for others until it is used, but for what the flow would need at once;
// when the first path fails, the flow has its links, and keeps its limit.
func TestSpare(t *testing.T) {
	top := topology(t, 2, 100*unit.Mbit, [2]fabric.DPID{1, 2}, [2]fabric.DPID{1, 2})
	r := request("run", 1, port(1, 1), port(2, 1), 40*unit.Mbit, 0)
	r.Protected = true
	n := Network{Topology: top, Reservations: admit(t, top, r), Enforcers: metered(top)}
	paths := n.Reservations[0].Paths
	be := FlowID{Port: paths[1].Links[0].From, Leaves: true}
	n.BestEffort = []Aggregate{{Port: be.Port, Leaves: true, Point: Point{Switch, be.Port}, Links: paths[1].Links}}
	p := newPlant(t, share.NewAdaptive(0))
	p.set(n)
	qos := forward("run")
	for range 20 {
		p.run(time.Second, map[FlowID]unit.Rate{qos: 30 * unit.Mbit, be: 200 * unit.Mbit})
	}
	if got := p.limits[be].Rate; got < 60*unit.Mbit || got > 70*unit.Mbit {
		t.Errorf("beside a spare path for 30 Mbit/s, best effort has %v", got)
	}
	was := p.limits[qos].Rate
	failed := top.Links()
	parts := fabric.Parts{Switches: slices.Clone(top.Switches()), Links: failed}
	for i, s := range parts.Switches {
		ports := slices.Clone(s.Ports)
		for k := range ports {
			if ports[k].No == paths[0].Links[0].From.Port {
				ports[k].State = fabric.Down
			}
		}
		parts.Switches[i].Ports = ports
	}
	down, err := fabric.New(parts)
	if err != nil {
		t.Fatal(err)
	}
	n.Topology = down
	p.set(n)
	if now := p.limits[qos].Rate; now > was+was/10 || now < 30*unit.Mbit || p.limits[be].Rate > 100*unit.Mbit-now {
		t.Errorf("after the failure the flow has %v, before %v, and best effort %v", now, was, p.limits[be].Rate)
	}
	if fs := p.cycle.Flows(); slices.ContainsFunc(fs, func(s Status) bool { return s.Spare }) {
		t.Errorf("a spare path that is used is reserved twice: %+v", fs)
	}
}

// status returns the status of a flow.
func (p *plant) status(id FlowID) Status {
	for _, s := range p.cycle.Flows() {
		if s.Flow == id {
			return s
		}
	}
	p.t.Fatalf("no flow %v", id)
	return Status{}
}
