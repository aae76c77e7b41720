package reservations

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/inmemory"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

func crowdCases() []bench.Case {
	return []bench.Case{
		{
			Name: "cycle", Run: cycleOfMany, Takes: bench.Takes(0, 12*time.Minute),
			Claims: []bench.Claim{
				bench.NewClaim("cycle/processor", "processor time that reservations cost the controller, on one processor, in each cycle of 1 s, with 1,000 switches and 10,000 active ones, of which 2,000 have traffic and a tenth of that changes in each second", cycle100),
				bench.NewClaim("cycle/controller", "all processor time of the controller in each cycle, with its etcd, the discovery of links, and what it does for switches without reservations", bench.Target{Op: bench.Measured, Unit: "ms"}),
				bench.NewClaim("cycle/idle", "changes of flows, groups and meters that switches get in 20 s in which no rate changes", needless),
				bench.NewClaim("cycle/start", "processor time of the controller for a cycle in which reservations begin or end", bench.Target{Op: bench.Measured, Unit: "ms"}),
			},
		},
		{
			Name: "failure/thousand", Run: thousandReroutes, Takes: bench.Takes(15*time.Second, 3*time.Minute),
			Claims: []bench.Claim{
				bench.NewClaim("failure/thousand", "from the death of a cable that carries 1,000 reservations until the last switch has the last change", thousand),
				bench.NewClaim("failure/thousand-left", "reservations that are then neither on another path nor shown as degraded", bench.Target{Op: "<=", Value: 0, Unit: "reservations"}),
			},
		},
	}
}

// active makes reservations that are active now.
func (c *crowd) active(ctx context.Context, r *bench.Run, count int, draw func() api.ReservationRequest) (made []api.ReservationRequest, err error) {
	refused := 0
	for began, said := time.Now(), time.Now(); len(made) < count; {
		one := draw()
		_, granted, _, err := c.create(ctx, one, false)
		switch {
		case err != nil:
			return nil, err
		case granted:
			made = append(made, one)
		default:
			if refused++; refused > count {
				return nil, fmt.Errorf("%d reservations were granted and %d refused", len(made), refused)
			}
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			r.Say("%d of %d reservations after %v, %d refused", len(made), count, time.Since(began).Round(time.Second), refused)
		}
	}
	return made, nil
}

// settle waits until the switches have had no change for some seconds.
func (c *crowd) settle(ctx context.Context, pause, limit time.Duration) (inmemory.Report, error) {
	for end := time.Now().Add(limit); ; {
		got, err := c.memory.Tell(inmemory.Order{Do: "look"})
		if err != nil {
			return got, err
		}
		if traffic.MonotonicNow()-got.LastChange > int64(pause) {
			return got, nil
		}
		if time.Now().After(end) {
			return got, fmt.Errorf("after %v the switches are still changed", limit)
		}
		if err := bench.Sleep(ctx, 500*time.Millisecond); err != nil {
			return got, err
		}
	}
}

func cycleOfMany(ctx context.Context, r *bench.Run) (err error) {
	network := inmemory.Network{Switches: 1000, Cables: 1500, Hosts: 1000, Seed: 1}
	count, sending, lasts := 10_000, 2000, 30
	if r.Quick && !r.Few {
		return errFull
	}
	if r.Quick {
		network = inmemory.Network{Switches: 50, Cables: 100, Hosts: 100, Seed: 1}
		count, sending, lasts = 500, 100, 5
	}
	c, err := gather(ctx, r, network)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	// Nothing is reserved.
	quiet := bench.Pick(r.Quick, 5*time.Second, 20*time.Second)
	usage := func(during func() error) (milliseconds float64, err error) {
		before, began := c.controller().Usage(), time.Now()
		err = during()
		return (c.controller().Usage() - before) / time.Since(began).Seconds() * cycle.Seconds() * 1000, err
	}
	// The target is of one processor; reservations are made on all.
	processors := func(n int) error {
		for _, pid := range bench.Family(c.controller().Process().Pid) {
			if err := bench.UseProcessors(pid, n); err != nil {
				return err
			}
		}
		return bench.Sleep(ctx, 3*time.Second) // until the program has noticed
	}
	if err := processors(1); err != nil {
		return err
	}
	without, err := usage(func() error { return bench.Sleep(ctx, quiet) })
	if err = errors.Join(err, processors(runtime.NumCPU())); err != nil {
		return err
	}
	var ends [][2]int
	made, err := c.active(ctx, r, count, func() api.ReservationRequest {
		from, to := c.pair()
		ends = append(ends, [2]int{from, to})
		one := between(from, to, unit.Rate(1+c.rnd.IntN(5))*unit.Mbit)
		one.Duration, one.Class = new("12h"), new(1+c.rnd.IntN(4))
		one.Flows = &[]api.ReservationFlow{{Protocol: new("udp"), DestinationPorts: new(fmt.Sprint(5000 + len(ends)))}}
		return one
	})
	if err != nil {
		return err
	}
	var streams []inmemory.Stream
	for i, one := range made[:sending] {
		port := 0
		fmt.Sscan(*(*one.Flows)[0].DestinationPorts, &port)
		streams = append(streams, inmemory.Stream{From: ends[port-5001][0], To: ends[port-5001][1], Port: uint16(port), Rate: unit.Rate(500+i%2000) * unit.Kbit})
	}
	if _, err := c.memory.Tell(inmemory.Order{Do: "send", Streams: streams}); err != nil {
		return err
	}
	if _, err := c.settle(ctx, 5*time.Second, 2*time.Minute); err != nil {
		r.Sheet(bench.Ours).Note("cycle/idle", "%v", err)
	}
	if err := processors(1); err != nil {
		return err
	}
	sheet := r.Sheet(bench.Ours)
	// Nothing changes.
	if _, err := c.memory.Tell(inmemory.Order{Do: "record"}); err != nil {
		return err
	}
	calm, err := usage(func() error { return bench.Sleep(ctx, quiet) })
	if err != nil {
		return err
	}
	got, err := c.memory.Tell(inmemory.Order{Do: "look"})
	if err != nil {
		return err
	}
	sheet.Set("cycle/idle", float64(len(got.Mods)))
	// A tenth of the flows changes in each second.
	if _, err := c.memory.Tell(inmemory.Order{Do: "record"}); err != nil {
		return err
	}
	busy, err := usage(func() error {
		for range lasts {
			for range sending / 10 {
				i := c.rnd.IntN(len(streams))
				streams[i].Rate = unit.Rate(100+c.rnd.IntN(6000)) * unit.Kbit
			}
			if _, err := c.memory.Tell(inmemory.Order{Do: "send", Streams: streams}); err != nil {
				return err
			}
			if err := bench.Sleep(ctx, time.Second); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if got, err = c.memory.Tell(inmemory.Order{Do: "look"}); err != nil {
		return err
	}
	meters := 0
	for _, m := range got.Mods {
		if openflow.Type(m.Message[1]) == openflow.TypeMeterMod {
			meters++
		}
	}
	sheet.Set("cycle/processor", busy-without)
	sheet.Note("cycle/processor", "%s ms while no rate changes; %.0f changes of meters a second, and %d other changes in all", bench.Number(calm-without), float64(meters)/float64(lasts), len(got.Mods)-meters)
	sheet.Set("cycle/controller", busy)
	sheet.Note("cycle/controller", "%s ms with the same switches without reservations", bench.Number(without))
	// Reservations begin and end.
	began := time.Now()
	start, err := usage(func() error {
		for range bench.Pick(r.Quick, 3, 10) {
			from, to := c.pair()
			one := between(from, to, unit.Mbit)
			one.Duration = new("1h")
			name, granted, _, err := c.create(ctx, one, false)
			if err == nil && granted {
				if err = bench.Sleep(ctx, time.Second); err == nil {
					err = c.cancel(ctx, name)
				}
			}
			if err == nil {
				err = bench.Sleep(ctx, time.Second)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	sheet.Set("cycle/start", start)
	sheet.Note("cycle/start", "one reservation begins or ends in each of %.0f seconds", time.Since(began).Seconds())
	return nil
}

func thousandReroutes(ctx context.Context, r *bench.Run) (err error) {
	network := inmemory.Network{Switches: 200, Cables: 400, Hosts: 400, Seed: 1}
	count := 1000
	if r.Quick {
		network = inmemory.Network{Switches: 50, Cables: 100, Hosts: 100, Seed: 1}
		count = 100
	}
	c, err := gather(ctx, r, network)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	// All from hosts at one end of a cable to hosts at the other, and few kilobits each: the shortest path is the cable.
	cable := c.busiest()
	a, b := c.plan.Cables[cable][0].Switch, c.plan.Cables[cable][1].Switch
	hostsAt := func(sw int) (all []int) {
		for h, at := range c.plan.Hosts {
			if at.Switch == sw {
				all = append(all, h)
			}
		}
		return all
	}
	from, to, port := hostsAt(a), hostsAt(b), 0
	if len(from) == 0 || len(to) == 0 {
		return errors.New("a switch has no host")
	}
	if _, err := c.active(ctx, r, count, func() api.ReservationRequest {
		one := between(from[port%len(from)], to[port%len(to)], 100*unit.Kbit)
		port++
		one.Duration, one.Class = new("12h"), new(1+port%4)
		one.Flows = &[]api.ReservationFlow{{Protocol: new("udp"), DestinationPorts: new(fmt.Sprint(2000 + port))}}
		return one
	}); err != nil {
		return err
	}
	if _, err := c.settle(ctx, 3*time.Second, time.Minute); err != nil {
		return err
	}
	on := func() (crossing, degraded int, err error) {
		all, err := c.all(ctx)
		ends := []string{fmt.Sprintf("%016x", inmemory.ID(a)), fmt.Sprintf("%016x", inmemory.ID(b))}
		for _, one := range all {
			switch {
			case one.Degraded != nil:
				degraded++
			case slices.ContainsFunc(one.Paths, func(p api.ReservationPath) bool {
				return slices.ContainsFunc(p.Links, func(l api.NetworkLinkEnds) bool { return l.From.Switch == ends[0] && l.To.Switch == ends[1] })
			}):
				crossing++
			}
		}
		return crossing, degraded, err
	}
	crossed, _, err := on()
	if err != nil {
		return err
	}
	if crossed < count*9/10 {
		return fmt.Errorf("%d of %d reservations cross the cable", crossed, count)
	}
	cut, err := c.memory.Tell(inmemory.Order{Do: "cut", Cable: cable})
	if err != nil {
		return err
	}
	if err := bench.Sleep(ctx, 5*time.Second); err != nil {
		return err
	}
	got, err := c.settle(ctx, 3*time.Second, time.Minute)
	if err != nil {
		return err
	}
	left, degraded, err := on()
	if err != nil {
		return err
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set("failure/thousand", float64(got.LastChange-cut.At)/1e9)
	sheet.Note("failure/thousand", "%d reservations crossed it; %d changes at switches; %d reservations are degraded", crossed, len(got.Mods), degraded)
	sheet.Set("failure/thousand-left", float64(left))
	return nil
}

// busiest returns a cable whose switches have both several cables, so that there is another path.
func (c *crowd) busiest() int {
	count := map[int]int{}
	for _, p := range c.plan.Cables {
		count[p[0].Switch]++
		count[p[1].Switch]++
	}
	best, most := 0, 0
	for i, p := range c.plan.Cables {
		if n := min(count[p[0].Switch], count[p[1].Switch]); n > most {
			best, most = i, n
		}
	}
	return best
}
