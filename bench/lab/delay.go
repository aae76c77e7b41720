package lab

import (
	"context"
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// delayCase measures pings over one link.
type delayCase struct {
	name   string
	rtt    time.Duration
	ipv6   bool
	loaded bool
	drawn  string
}

func delayCases(d *bench.Draw) (out []bench.Case) {
	var cases []delayCase
	for i, rtt := range []time.Duration{1, 10, 50, 150, 300, 600} {
		rtt *= time.Millisecond
		cases = append(cases, delayCase{name: "idle/" + rtt.String(), rtt: rtt, ipv6: i%2 == 1})
	}
	v := d.For("delay/drawn-1")
	drawn := delayCase{name: "idle/drawn-1", rtt: v.Duration(time.Millisecond, 600*time.Millisecond)}
	drawn.drawn = fmt.Sprintf("%v round-trip time", drawn.rtt)
	cases = append(cases, drawn)
	for _, rtt := range []time.Duration{time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond} {
		cases = append(cases, delayCase{name: "200Mbit/" + rtt.String(), rtt: rtt, loaded: true})
	}
	for _, c := range cases {
		out = append(out, bench.Case{
			Name: c.id(), Claims: c.claims(), Run: c.run, Drawn: c.drawn, Alongside: c.alongside,
			Takes: func(quick bool) time.Duration { return c.settle() + c.length(quick) + c.rtt + time.Second },
		})
	}
	return out
}

// alongside: pings on idle links take almost no resources.
func (c delayCase) alongside(quick bool) string {
	if c.loaded {
		return ""
	}
	return bench.Pick(quick, "idle links", "")
}

func (c delayCase) id() string { return "delay/" + c.name }

func (c delayCase) claims() []bench.Claim {
	if c.loaded {
		return []bench.Claim{bench.NewClaim(c.id()+"/p99", "p99 of the round-trip time with 200 Mbit/s of TCP, minus nominal", loadedP99)}
	}
	return []bench.Claim{
		bench.NewClaim(c.id()+"/p50", "median round-trip time, deviation from nominal", delayP50),
		bench.NewClaim(c.id()+"/p99", "p99 of the round-trip time, deviation from nominal", delayP99),
	}
}

// settle is the duration of slow start, whose bursts pass at a rate of 1 Gbit/s.
func (c delayCase) settle() time.Duration {
	if !c.loaded {
		return 0
	}
	return time.Second + 10*c.rtt
}

func (c delayCase) length(quick bool) time.Duration {
	return bench.Pick(quick, 1500*time.Millisecond, 10*time.Second)
}

func (c delayCase) run(ctx context.Context, r *bench.Run) error {
	forward, back := lab.Path{}, lab.Path{}
	forward.Delay, back.Delay = c.rtt/2, c.rtt-c.rtt/2
	if c.loaded {
		forward.Rate, forward.Queue = unit.Gbit, link.Amount{Time: 200 * time.Millisecond}
	}
	return with(ctx, pair(forward, back), func(l *lab.Lab) error {
		p, err := traffic.StartProbe(ctx, l.Host, traffic.Probe{Name: "p", From: client, To: server, IPv6: c.ipv6})
		if err != nil {
			return err
		}
		began := traffic.MonotonicNow()
		var flows []traffic.Flow
		if c.loaded {
			flows = append(flows, traffic.Flow{Name: "load", From: client, To: server, Protocol: traffic.TCP, Schedule: traffic.Constant(200 * unit.Mbit)})
		}
		load, err := c.during(ctx, l, flows, c.settle()+c.length(r.Quick))
		result, stopped := p.Stop()
		if err != nil {
			return err
		}
		if stopped != nil {
			return stopped
		}
		if err := answered(result); err != nil {
			return err
		}
		times := result.Between(began+int64(c.settle()), math.MaxInt64)
		nominal := c.rtt.Seconds() * 1e3
		sheet := r.Sheet(bench.Ours)
		sheet.Keep("rtt_ms", map[string]float64{"p50": times.P50Us / 1e3, "p99": times.P99Us / 1e3, "max": times.MaxUs / 1e3, "sent": float64(result.Sent), "lost": float64(result.Lost)})
		var ids []string
		for _, claim := range c.claims() {
			ids = append(ids, claim.ID)
		}
		if c.loaded {
			sheet.Set(ids[0], times.P99Us/1e3-nominal)
			sheet.Note(ids[0], "the load got %s Mbit/s", bench.Number(load/1e6))
		} else {
			sheet.Set(ids[0], math.Abs(times.P50Us/1e3-nominal))
			sheet.Set(ids[1], math.Abs(times.P99Us/1e3-nominal))
		}
		lateness(sheet, l, ids...)
		return nil
	})
}

// answered returns an error if so many pings were not answered that p99 is one of them.
func answered(r *traffic.ProbeResult) error {
	if r.Sent == 0 || r.Lost*100 >= r.Sent {
		return fmt.Errorf("%d of %d pings were not answered", r.Lost, r.Sent)
	}
	return nil
}

// during runs the load, or waits.
func (c delayCase) during(ctx context.Context, l *lab.Lab, flows []traffic.Flow, length time.Duration) (rate float64, err error) {
	if len(flows) == 0 {
		select {
		case <-ctx.Done():
		case <-time.After(length):
		}
		return 0, ctx.Err()
	}
	got, err := flowsAlone(ctx, l, flows, traffic.Options{Duration: length, Interval: 250 * time.Millisecond})
	if err != nil {
		return 0, err
	}
	return got.Flow("load").Between(c.settle(), length).DeliveredRate(), nil
}
