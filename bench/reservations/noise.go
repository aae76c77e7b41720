package reservations

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// noisyFlows is how many flows there are: 20 in 10 min are 3.3 flow hours.
const noisyFlows = 20

func noiseCases(d *bench.Draw) (all []bench.Case) {
	for _, percent := range []int{5, 10} {
		id := fmt.Sprintf("noise/%d", percent)
		all = append(all, bench.Case{
			Name: id, Drawn: fmt.Sprintf("noise of seed %d", d.Seed()), Takes: bench.Takes(0, 11*time.Minute),
			Run:       func(ctx context.Context, r *bench.Run) error { return noise(ctx, r, percent, d.Seed()) },
			Alongside: func(bool) string { return "noise" },
			Claims: []bench.Claim{
				bench.NewClaim(id+"/false", fmt.Sprintf("seizures that are handed back within 3 cycles, of %d constant flows whose rates of each second have a standard deviation of %d %%", noisyFlows, percent), falsely),
				bench.NewClaim(id+"/fall", "until the limit of a flow has followed a fall of 20 % by half of it, the last of all flows", seenIn3),
			},
		})
	}
	return all
}

// noise lets flows of 1 Mbit/s send 90 % of their reservations with noise, and then 20 % less. Greedy UDP fills the link of 40 Mbit/s.
func noise(ctx context.Context, r *bench.Run, percent int, seed uint64) (err error) {
	if r.Quick && !r.Few {
		return errFull
	}
	const line, held = 40 * unit.Mbit, unit.Mbit
	n, err := dumbbell(line, 2).up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	length := bench.Pick(r.Quick, 30*time.Second, 10*time.Minute)
	const after = 10 * time.Second
	var all []promise
	flows := []traffic.Flow{{Name: "rest", From: "h2", To: "h4", Protocol: traffic.UDP, DstPort: 6000, Schedule: traffic.Constant(line * 5 / 4)}}
	rnd := rand.New(rand.NewPCG(seed, uint64(percent)))
	for k := range noisyFlows {
		p := promise{name: fmt.Sprint("flow", k+1), from: "h1", to: "h3", rate: held, class: 1 + k%4, protocol: "udp", port: 5001 + k}
		all = append(all, p)
		f := traffic.Flow{Name: p.name, From: p.from, To: p.to, Protocol: traffic.UDP, DstPort: uint16(p.port), Payload: 200}
		mean := 0.9 * float64(held)
		// The rates change at another moment than the controller reads, which is what it meets.
		offset := time.Duration(rnd.Int64N(int64(time.Second)))
		for at := time.Duration(0); at < length+after; at += time.Second {
			level := mean
			if at >= length {
				level *= 0.8
			}
			f.Schedule = append(f.Schedule, traffic.Step{At: max(0, at-offset), Rate: unit.Rate(max(0.1*level, level*(1+float64(percent)/100*rnd.NormFloat64())))})
		}
		f.Schedule = slices.CompactFunc(f.Schedule, func(a, b traffic.Step) bool { return a.At == b.At })
		flows = append(flows, f)
	}
	if err := n.reserve(ctx, all...); err != nil {
		return err
	}
	_, limits, start, err := n.sendWatched(ctx, flows, length+after)
	if err != nil {
		return err
	}
	falls := start.Add(length)
	seized, falselySeized, last, seen := 0, 0, 0.0, 0
	for _, p := range all {
		t := turns(limits[p.name])
		a, b := seizures(t, start, falls.Add(-time.Second), float64(held))
		seized, falselySeized = seized+a, falselySeized+b
		before, ok := highest(limits[p.name], falls.Add(-2*time.Second), falls.Add(-time.Second))
		if !ok {
			return fmt.Errorf("no limit of %s was read", p.name)
		}
		took := after
		for _, l := range t {
			if l.at.After(falls.Add(-time.Second)) && l.limit < 0.9*min(before, float64(held)) {
				took = l.at.Sub(falls)
				break
			}
		}
		if took <= 3*cycle {
			seen++
		}
		last = max(last, took.Seconds()/cycle.Seconds())
	}
	hours := float64(len(all)) * length.Hours()
	id, sheet := fmt.Sprintf("noise/%d", percent), r.Sheet(bench.Ours)
	sheet.Set(id+"/false", float64(falselySeized)/hours)
	sheet.Note(id+"/false", "%d false seizures in %.2f flow hours, of %d in all", falselySeized, hours, seized)
	sheet.Set(id+"/fall", last)
	sheet.Note(id+"/fall", "%d of %d flows within 3 cycles", seen, len(all))
	return nil
}

// seizures counts how often a limit fell below what was held of a reservation by more than 1 % of it, and how often more than half of that was
// returned within three cycles.
func seizures(turns []limited, from, to time.Time, reserved float64) (all, falsely int) {
	for i := 1; i < len(turns); i++ {
		had, has := min(turns[i-1].limit, reserved), min(turns[i].limit, reserved)
		if turns[i].at.Before(from) || turns[i].at.After(to) || had-has <= reserved/100 {
			continue
		}
		all++
		for _, later := range turns[i+1:] {
			if later.at.Sub(turns[i].at) <= 3*cycle+200*time.Millisecond && min(later.limit, reserved) > has+(had-has)/2 {
				falsely++
				break
			}
		}
	}
	return all, falsely
}
