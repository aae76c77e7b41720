package relay

import (
	"context"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// fadeCase is a path whose rate falls to a tenth for some time, and returns.
func fadeCase() bench.Case {
	const id = "fade/100-10Mbit"
	p := path{100 * unit.Mbit, 300 * ms, 0}
	peers := []method{directCUBIC, directBBR, proxy}
	var names []string
	for _, m := range peers {
		names = append(names, m.name)
	}
	falls := func(quick bool) time.Duration { return bench.Pick(quick, 4*time.Second, 15*time.Second) }
	after := func(quick bool) time.Duration { return bench.Pick(quick, 4*time.Second, 15*time.Second) }
	lasts := func(quick bool) time.Duration { return bench.Pick(quick, 3*time.Second, 20*time.Second) }
	return bench.Case{
		Name: id,
		Claims: []bench.Claim{
			bench.NewClaim(id+"/back", "from the return of the rate until 90 % of it are delivered, over 300 ms", back, names...),
			bench.NewClaim(id+"/stall", "longest time without a byte, after the first", stall, names...),
		},
		Takes: func(quick bool) time.Duration {
			return time.Duration(bench.Pick(quick, 1, len(peers)+1)) * (falls(quick) + lasts(quick) + after(quick) + 5*time.Second)
		},
		Alongside: slowBatch,
		Run: func(ctx context.Context, r *bench.Run) error {
			returns := falls(r.Quick) + lasts(r.Quick)
			drawn := plot.Plot{
				File: "fade", Row: "fade", Title: "The rate falls to a tenth and returns", X: "time (s)", Y: "rate (Mbit/s)", YMax: 150,
				Caption: "One connection over a path of 300 ms, in bins of 0.5 s. What was held up in the queue arrives together.",
			}
			defer func() { r.Plot(drawn) }()
			measure := func(m method) error {
				slow, fast := p.spec(10*unit.Mbit), p.spec(p.rate)
				timeline := []lab.Event{{At: falls(r.Quick), Link: pathName(0), Forward: &slow}, {At: returns, Link: pathName(0), Forward: &fast}}
				got, _, err := trial{paths: paths(p), method: m, flows: []traffic.Flow{greedy(m.congestion)}, timeline: timeline, length: returns + after(r.Quick), interval: 20 * ms}.run(ctx)
				if err != nil {
					return err
				}
				f := got.Flow("f")
				sheet := r.Sheet(m.name)
				if at, ok := reached(f, returns, 0.9*float64(p.rate)); ok {
					sheet.Set(id+"/back", float64(at-returns)/float64(p.rtt))
				} else {
					sheet.Fail(errNever)
				}
				drawn.Lines = append(drawn.Lines, rateLine(f, m.name, len(drawn.Lines)))
				sheet.Set(id+"/stall", longestStall(f).Seconds()/p.rtt.Seconds())
				return nil
			}
			if err := measure(ours); err != nil {
				return err
			}
			if r.Quick && !r.Few {
				return nil
			}
			for _, m := range peers {
				if err := measure(m); err != nil {
					r.Sheet(m.name).Fail(err)
				}
			}
			return ctx.Err()
		},
	}
}

// reached returns from when on a flow has delivered at least a rate, over 300 ms, after a time.
func reached(f *traffic.FlowResult, after time.Duration, rate float64) (at time.Duration, ok bool) {
	const over = 300 * ms
	for _, i := range f.Intervals {
		from := time.Duration(i.StartSeconds * float64(time.Second))
		if from < after {
			continue
		}
		part := f.Between(from, from+over)
		if part.Seconds < over.Seconds()*0.9 {
			return 0, false
		}
		if part.DeliveredRate() >= rate {
			return from, true
		}
	}
	return 0, false
}

// longestStall returns the longest time without a delivered byte, after the first.
func longestStall(f *traffic.FlowResult) (longest time.Duration) {
	began, idle := false, 0.0
	for _, i := range f.Intervals {
		if i.DeliveredBytes > 0 {
			began, idle = true, 0
			continue
		}
		if began {
			idle += i.Seconds
			longest = max(longest, time.Duration(idle*float64(time.Second)))
		}
	}
	return longest
}
