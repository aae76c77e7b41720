package lab

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// rateCase is one TCP connection through one link.
type rateCase struct {
	name  string
	rate  unit.Rate
	rtt   time.Duration
	ipv6  bool
	drawn string
}

func rateCases(d *bench.Draw) (out []bench.Case) {
	cases := []rateCase{
		{rate: 500 * unit.Kbit, rtt: 20 * time.Millisecond},
		{rate: 5 * unit.Mbit, rtt: 100 * time.Millisecond},
		{rate: 50 * unit.Mbit, rtt: 50 * time.Millisecond, ipv6: true},
		{rate: 200 * unit.Mbit, rtt: 10 * time.Millisecond},
		{rate: unit.Gbit, rtt: 10 * time.Millisecond},
		{rate: unit.Gbit, rtt: 50 * time.Millisecond, ipv6: true},
		{rate: 5 * unit.Gbit, rtt: 5 * time.Millisecond},
		{rate: 10 * unit.Gbit, rtt: 10 * time.Millisecond},
	}
	for i := range cases {
		c := &cases[i]
		c.name = fmt.Sprintf("%v/%s/%s", c.rate, c.rtt, family(c.ipv6))
	}
	for i := range 3 {
		name := fmt.Sprintf("drawn-%d", i+1)
		v := d.For("rate/" + name)
		c := rateCase{
			name: name, rate: v.Rate(500*unit.Kbit, unit.Gbit), rtt: v.Duration(time.Millisecond, 100*time.Millisecond), ipv6: bench.OneOf(v, false, true),
		}
		c.drawn = fmt.Sprintf("%v, %v round-trip time, %s", c.rate, c.rtt, family(c.ipv6))
		cases = append(cases, c)
	}
	// Neighbours that load the machine little run in parallel in a smoke run.
	slices.SortStableFunc(cases, func(a, b rateCase) int { return bench.Pick(a.slow(), 0, 1) - bench.Pick(b.slow(), 0, 1) })
	for _, c := range cases {
		batch := func(quick bool) string {
			if c.slow() {
				return bench.Pick(quick, "slow links", "")
			}
			return ""
		}
		out = append(out, bench.Case{
			Name: c.id(), Claims: []bench.Claim{c.claim()}, Run: c.run, Alongside: batch, Drawn: c.drawn,
			Takes: func(quick bool) time.Duration { return c.settle() + c.length(quick) + time.Second },
		})
	}
	return out
}

func (c rateCase) slow() bool { return c.rate <= 200*unit.Mbit }

func (c rateCase) id() string { return "rate/" + c.name }

func (c rateCase) claim() bench.Claim {
	t := rateOff
	if c.rate > unit.Gbit {
		t = fastRateOff
	}
	return bench.NewClaim(c.id(), "goodput of one Reno connection, deviation from the maximum of its framing", t)
}

// settle returns the maximum duration of slow start and its overshoot.
func (c rateCase) settle() time.Duration { return time.Second + 20*c.rtt }

// length has so many segments that one more or less does not matter.
func (c rateCase) length(quick bool) time.Duration {
	if c.rate < 5*unit.Mbit {
		return bench.Pick(quick, 8*time.Second, 30*time.Second)
	}
	return bench.Pick(quick, 2*time.Second, 10*time.Second)
}

func (c rateCase) run(ctx context.Context, r *bench.Run) error {
	return with(ctx, symmetric(c.rate, c.rtt), func(l *lab.Lab) error {
		flow := filling(c.rate, c.rtt)
		flow.IPv6 = c.ipv6
		total := c.settle() + c.length(r.Quick)
		got, err := flowsAlone(ctx, l, []traffic.Flow{flow}, traffic.Options{Duration: total, Interval: 250 * time.Millisecond})
		if err != nil {
			return err
		}
		f := got.Flow("f")
		rate := f.Between(c.settle(), total).DeliveredRate()
		sheet := r.Sheet(bench.Ours)
		sheet.Set(c.id(), 100*math.Abs(rate/float64(c.rate)-1))
		sheet.Note(c.id(), "%s Mbit/s in layer 2, %d retransmissions", bench.Number(rate/1e6), f.Total.Retransmits)
		lateness(sheet, l, c.id())
		return nil
	})
}
