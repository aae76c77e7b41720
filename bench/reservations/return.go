package reservations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// woken is a case of a flow that sleeps until others use what it holds, and wakes.
type woken struct {
	id, what string
	point    string // switch, router or host
	rate     unit.Rate
	target   bench.Target
}

var wakings = []woken{
	{"meters/5Mbit", "on switches with meters, a link of 5 Mbit/s", "switch", 5 * unit.Mbit, cycles2},
	{"meters/50Mbit", "on switches with meters, a link of 50 Mbit/s", "switch", 50 * unit.Mbit, cycles2},
	{"router/50Mbit", "on Linux routers, a link of 50 Mbit/s", "router", 50 * unit.Mbit, ms150},
	{"router/500Mbit", "on Linux routers, a link of 500 Mbit/s", "router", 500 * unit.Mbit, ms150},
	{"host/50Mbit", "at a host, whose line of 50 Mbit/s its other traffic fills", "host", 50 * unit.Mbit, ms150},
}

const (
	sampled = 50 * time.Millisecond // of the receiver
	cycle   = time.Second           // of the controller, at its default
	// wokenPart is what counts as having the rate: each datagram arrives whole, and 50 ms at 2 Mbit/s have eight.
	wokenPart = 0.9
)

func returnCases() (all []bench.Case) {
	for _, w := range wakings {
		id := "return/" + w.id
		all = append(all, bench.Case{
			Name: id, Run: w.run, Takes: bench.Takes(bench.Pick(w.smoke(), 30*time.Second, 0), 2*time.Minute),
			Claims: []bench.Claim{bench.NewClaim(id, "until a QoS1 flow of UDP that wakes has "+fmt.Sprint(wokenPart*100)+" % of its rate in a sample of 50 ms and in the second after it, the worst of several times: "+w.what, w.target)},
		})
	}
	return all
}

// network is h1 with the reserved flow, which holds two fifths of the link, and h2 with one of a lower class, and h3 with the rest. At a host h1 has all.
func (w woken) network() design {
	d := dumbbell(w.rate, 3)
	switch w.point {
	case "router":
		d.routers = true
	case "host":
		d.agents = []string{"h1"}
		d.cables[0].rate = 10 * w.rate
		d.hosts[0].rate, d.hosts[0].delay = w.rate, 500*time.Microsecond
	}
	return d
}

// smoke reports whether a smoke run has the case.
func (w woken) smoke() bool { return w.rate < 50*unit.Mbit }

func (w woken) run(ctx context.Context, r *bench.Run) (err error) {
	if r.Quick && !r.Few && !w.smoke() {
		return errFull
	}
	n, err := w.network().up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	if w.point == "host" {
		// The line of a veth is unknown to its host, as that of a virtual machine is: the operator writes it.
		if err := n.limitHost(ctx, "h1", w.rate*99/100); err != nil {
			return err
		}
	}
	held := w.rate * 2 / 5
	other := bench.Pick(w.point == "host", "h1", "h2")
	rest := bench.Pick(w.point == "host", "h1", "h3")
	if err := n.reserve(ctx,
		promise{name: "sleeper", from: "h1", to: "h4", rate: held, class: 1, protocol: "udp", port: 5001},
		promise{name: "other", from: other, to: "h5", rate: w.rate / 5, class: 2, protocol: "udp", port: 5002}); err != nil {
		return err
	}
	// It sleeps for a time that differs, so that it wakes at any moment of a cycle.
	const first, awake = 12 * time.Second, 3 * time.Second
	flow := traffic.Flow{Name: "sleeper", From: "h1", To: "h4", Protocol: traffic.UDP, DstPort: 5001}
	asleep := held / 50
	flow.Schedule = traffic.Constant(asleep)
	var wakes []time.Duration
	at := first
	for k := range bench.Pick(r.Quick, 1, 7) {
		wakes = append(wakes, at)
		flow.Schedule = append(flow.Schedule, traffic.Step{At: at, Rate: held}, traffic.Step{At: at + awake, Rate: asleep})
		at += awake + 9*time.Second + time.Duration(k)*170*time.Millisecond
	}
	session, err := traffic.Start(ctx, n.Host, []traffic.Flow{
		flow,
		{Name: "other", From: other, To: "h5", Protocol: traffic.UDP, DstPort: 5002, Schedule: traffic.Constant(w.rate)},
		{Name: "rest", From: rest, To: "h6", Protocol: traffic.UDP, DstPort: 5003, Schedule: traffic.Constant(w.rate * 6 / 5)},
	}, traffic.Options{Duration: at - 5*time.Second, Interval: sampled})
	if err != nil {
		return err
	}
	result := session.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var took []float64
	for _, t := range wakes {
		d, ok := returned(result.Flow("sleeper"), t, held)
		if !ok {
			d = awake
		}
		took = append(took, d.Seconds())
	}
	lent := result.Flow("other").Between(first-3*time.Second, first).DeliveredRate() + result.Flow("rest").Between(first-3*time.Second, first).DeliveredRate()
	if lent < 0.8*float64(w.rate) {
		return fmt.Errorf("the link is not full while the flow sleeps: the others have %v of %v", unit.Rate(lent), w.rate)
	}
	id, sheet := "return/"+w.id, r.Sheet(bench.Ours)
	worst := slices.Max(took)
	if w.target == ms150 {
		worst *= 1000
	} else {
		worst /= cycle.Seconds()
	}
	sheet.Set(id, worst)
	sheet.Note(id, "the worst of %d, median %s s; while it slept the others had %v of the link", len(took), bench.Number(bench.Median(took)), unit.Rate(lent))
	sheet.Keep("seconds", took)
	r.Plot(w.plot(result, held))
	return nil
}

// returned returns after what time since a flow was to have a rate it had it.
func returned(f *traffic.FlowResult, since time.Duration, rate unit.Rate) (time.Duration, bool) {
	for at := since; at < since+2500*time.Millisecond; at += sampled {
		now, then := f.Between(at, at+sampled), f.Between(at, at+500*time.Millisecond)
		if now.DeliveredRate() >= wokenPart*float64(rate) && then.DeliveredRate() >= wokenPart*float64(rate) {
			return at + sampled - since, true
		}
	}
	return 0, false
}

func (w woken) plot(result *traffic.Result, held unit.Rate) plot.Plot {
	p := plot.Plot{
		Row: "return", File: "return-" + w.point + "-" + fmt.Sprint(uint64(w.rate/unit.Mbit)), X: "time (s)", Y: "Mbit/s",
		Title: "A flow wakes: " + w.what, Caption: "What the receivers got in each half second. Dashed: what the sleeper reserved.",
	}
	for i := range result.Flows {
		f := &result.Flows[i]
		l := plot.Line{Name: f.Name, Colour: i, Steps: true}
		for at := time.Duration(0); at.Seconds() < result.Seconds-0.5; at += 500 * time.Millisecond {
			l.X, l.Y = append(l.X, at.Seconds()), append(l.Y, f.Between(at, at+500*time.Millisecond).DeliveredRate()/1e6)
		}
		p.Lines = append(p.Lines, l)
	}
	level := plot.Level("reserved", float64(held)/1e6, 0, result.Seconds, 0)
	level.Dashed = true
	p.Lines = append(p.Lines, level)
	return p
}
