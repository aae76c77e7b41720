package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// crossCase is virtual cross traffic, and a probe flow that offers more than the available bandwidth.
type crossCase struct {
	name  string
	rate  unit.Rate
	cross link.Cross
	drawn string
}

func crossCases(d *bench.Draw) (out []bench.Case) {
	cases := []crossCase{
		{name: "poisson/60of100Mbit", rate: 100 * unit.Mbit, cross: link.Cross{Load: 60 * unit.Mbit, Sizes: []int{60, 590, 1514}}},
		{name: "pareto/60of100Mbit", rate: 100 * unit.Mbit, cross: link.Cross{Load: 60 * unit.Mbit, Model: link.Pareto}},
		{name: "poisson/300of1000Mbit", rate: unit.Gbit, cross: link.Cross{Load: 300 * unit.Mbit}},
	}
	v := d.For("cross/drawn-1")
	c := crossCase{name: "drawn-1", rate: v.Rate(10*unit.Mbit, 500*unit.Mbit)}
	c.cross = link.Cross{Load: unit.Rate(float64(c.rate) * math.Round(v.Uniform(20, 80)) / 100), Model: bench.OneOf(v, link.Poisson, link.Pareto)}
	c.drawn = fmt.Sprintf("%v of %s on %v", c.cross.Load, c.cross.Model, c.rate)
	for _, c := range append(cases, c) {
		out = append(out, bench.Case{
			Name: c.id(), Claims: c.claims(), Run: c.run, Drawn: c.drawn, Alongside: func(bool) string { return "cross" },
			Takes: func(quick bool) time.Duration { return c.length(quick) + 5*time.Second },
		})
	}
	return out
}

func (c crossCase) id() string { return "cross/" + c.name }

func (c crossCase) claims() []bench.Claim {
	return []bench.Claim{
		bench.NewClaim(c.id()+"/available", "available bandwidth from the release log, deviation from the rate minus the nominal load", crossOff),
		bench.NewClaim(c.id()+"/interleaving", "packets, virtual and real, that did not depart at max(arrival, previous departure) + size/rate", outOfPlace),
		bench.NewClaim(c.id()+"/seen", "received rate of a probe flow that offers 1.5 times the available bandwidth, deviation from rate * offered/(offered + nominal load)", crossOff),
	}
}

func (c crossCase) length(quick bool) time.Duration {
	return bench.Pick(quick, 6*time.Second, 60*time.Second)
}

// settled is the time at which the probe flow has filled the queue.
const settled = time.Second

func (c crossCase) run(ctx context.Context, r *bench.Run) error {
	// The queue holds the excess of a second, so that nothing is lost and the probe's share follows
	// only from the order of arrival.
	spec := link.Spec{Rate: c.rate, Cross: []link.Cross{c.cross}, Queue: link.Amount{Time: 10 * time.Second}}
	left := c.rate - c.cross.Load
	offered := left * 3 / 2
	length := c.length(r.Quick)
	var got *traffic.Result
	log, _, err := logged(ctx, pair(lab.Path{Spec: spec}, lab.Path{}), func(l *lab.Lab) (err error) {
		// The probe flow lasts until the queue would be full; for the rest of the time there is only
		// the cross traffic.
		flow := traffic.Flow{
			Name: "probe", From: client, To: server, Protocol: traffic.UDP,
			Schedule: []traffic.Step{{Rate: offered}, {At: c.probing(r.Quick)}},
		}
		got, err = flowsAlone(ctx, l, []traffic.Flow{flow}, traffic.Options{Duration: length, Interval: 100 * time.Millisecond})
		return err
	})
	if err != nil {
		return err
	}
	packets := prepare(spec, log)
	if len(packets) == 0 {
		return errors.New("the release log is empty")
	}
	first, last := packets[0].Arrived, packets[len(packets)-1].Arrived
	window := min(int64(length), last-first)
	available := float64(link.Available(spec, log, first, first+window))
	order := serialiser(spec, packets)
	seen := got.Flow("probe").Between(settled, c.probing(r.Quick)).DeliveredRate()
	// A FIFO serves in the order of arrival: each flow gets its part of the offered load.
	want := float64(c.rate) * float64(offered) / float64(offered+c.cross.Load)
	sheet := r.Sheet(bench.Ours)
	id := c.id()
	sheet.Set(id+"/available", 100*math.Abs(available/float64(left)-1))
	sheet.Note(id+"/available", "%s Mbit/s over %.1f s", bench.Number(available/1e6), float64(window)/1e9)
	sheet.Set(id+"/interleaving", float64(order.wrong))
	sheet.Note(id+"/interleaving", "%v", order)
	sheet.Set(id+"/seen", 100*math.Abs(seen/want-1))
	sheet.Note(id+"/seen", "%s Mbit/s at its receiver, expected %s with the nominal load", bench.Number(seen/1e6), bench.Number(want/1e6))
	return nil
}

// probing returns the duration of the probe flow: the overload is at most 0.4 of the rate, so that 10
// s of queue are enough for 20 s of it.
func (c crossCase) probing(quick bool) time.Duration {
	return bench.Pick(quick, 5*time.Second, 20*time.Second)
}
