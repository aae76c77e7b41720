package probing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// instance is a link with burst credits, as that of a cloud's burst instance, and the bytes that the schedule may send for them.
type instance struct {
	name            string
	burst, baseline unit.Rate
	bucket          unit.Bytes
	bytes           unit.Bytes
}

// instances are those of the row "credits". The schedule's bytes empty a bucket twice.
func instances(d *bench.Draw, quick bool) []instance {
	gigabytes := unit.Bytes(d.For("credits").Uniform(1e9, 4e9))
	if quick {
		gigabytes = 1_000_000_000
	}
	return []instance{
		{"5Gbit-750Mbit-30MB", 5 * unit.Gbit, 750 * unit.Mbit, 30_000_000, 200_000_000},
		{"10Gbit-1250Mbit-gigabytes", 10 * unit.Gbit, 1250 * unit.Mbit, gigabytes, 3 * gigabytes},
	}
}

func creditsCases(d *bench.Draw) (out []bench.Case) {
	for i, in := range instances(d, false) {
		id := "credits/" + in.name
		out = append(out, bench.Case{
			Name: id,
			Claims: []bench.Claim{
				bench.NewClaim(id+"/baseline", "error of the baseline rate after a day", creditsRateOff),
				bench.NewClaim(id+"/burst", "error of the burst rate after a day", creditsRateOff),
				bench.NewClaim(id+"/bucket", "error of the bucket after a day", creditsBucketOff),
				bench.NewClaim(id+"/none", "answers of the day that say there is no limiter for more bytes than pass it", noneFalse),
			},
			Drawn: "what the host itself sends before half of the measurements, up to 100 MB, and how long it is idle then; the time in which a receiver reports a train, 2 to 200 ms. There is no others' traffic.",
			Takes: bench.Takes(20*time.Second, 2*time.Minute),
			Run: func(ctx context.Context, r *bench.Run) error {
				return runCredits(ctx, r, instances(d, r.Quick)[i], d.For(id))
			},
		})
	}
	return out
}

// creditsPath is the path of an instance in virtual time, with the time in which a receiver reports a train.
type creditsPath struct {
	*sim.Network
	silence time.Duration
}

// runCredits measures days of the schedule, and takes the worst of them.
func runCredits(ctx context.Context, r *bench.Run, in instance, d *bench.Draw) error {
	id, sheet := "credits/"+in.name, r.Sheet(bench.Ours)
	days := make([]creditsDay, bench.Pick(r.Quick, 1, 10))
	errs := make([]error, len(days))
	onAll(ctx, len(days), func(i int) { days[i], errs[i] = in.day(ctx, d.For(fmt.Sprint(i))) })
	if err := errors.Join(errs...); err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	var worst creditsDay
	for _, one := range days {
		worst.baseline, worst.burst, worst.bucket = math.Max(worst.baseline, one.baseline), math.Max(worst.burst, one.burst), math.Max(worst.bucket, one.bucket)
		worst.none, worst.answers, worst.emptied = worst.none+one.none, worst.answers+one.answers, worst.emptied+one.emptied
	}
	sheet.Set(id+"/baseline", worst.baseline)
	sheet.Set(id+"/burst", worst.burst)
	sheet.Set(id+"/bucket", worst.bucket)
	sheet.Set(id+"/none", float64(worst.none))
	sheet.Note(id+"/bucket", "the worst of %d days, in which the bucket of %v was emptied %d times", len(days), in.bucket, worst.emptied)
	sheet.Note(id+"/none", "%d answers", worst.answers)
	return nil
}

// creditsDay is how far what is known after a day is off, in percent, and what its answers were.
type creditsDay struct {
	baseline, burst, bucket float64
	none, answers, emptied  int
}

// day measures a day of the schedule: everything about the path each hour, its burst credits each six hours. The method is that of the command, without the caps of a session and without trains that are sent again.
func (in instance) day(ctx context.Context, d *bench.Draw) (out creditsDay, err error) {
	hop := link.Spec{Rate: in.burst, Delay: time.Millisecond, Queue: link.Amount{Time: 20 * time.Millisecond}, Bucket: &link.Bucket{Rate: in.baseline, Size: in.bucket}}
	p := creditsPath{sim.New(sim.Path{Hops: []link.Spec{hop}, Noise: 500 * time.Nanosecond, Skew: d.Uniform(-5e-5, 5e-5)}, d.Seed()), d.Duration(2*time.Millisecond, 200*time.Millisecond)}
	s := schedule.Schedule{
		Hosts: []schedule.Host{{Host: "a"}, {Host: "b"}}, Budget: 1 << 40,
		Measures: []schedule.Measure{
			{Measure: "path", Every: schedule.Duration(time.Hour)},
			{Measure: "credits", Every: schedule.Duration(6 * time.Hour), Bytes: in.bytes, Time: schedule.Duration(3 * time.Minute)},
		},
	}.WithDefaults()
	if problems := s.Check(); len(problems) > 0 {
		return out, fmt.Errorf("schedule: %+v", problems)
	}
	state := schedule.State{Hosts: []string{"a", "b"}, Last: map[schedule.Task]schedule.Last{}}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var known path.Answer
	for now := begin; now.Before(begin.AddDate(0, 0, 1)); now = now.Add(time.Minute) {
		for _, t := range s.Next(now, state) {
			if ctx.Err() != nil {
				return out, ctx.Err()
			}
			state.Last[t] = schedule.Last{At: now}
			p.use(d, in)
			bytes, limit := s.Bounds(t.Measure)
			a, err := p.measure(ctx, t.Measure, bytes, time.Duration(limit))
			if err != nil {
				return out, err
			}
			if out.answers++; a.Limiter != nil && a.Limiter.Class == limiter.None && float64(a.Limiter.Held) > in.passes() {
				out.none++
			}
			if a.Credits != nil {
				if !a.Credits.Baseline.Known() && float64(a.Credits.Passed) > in.passes() {
					out.none++
				}
				a.AddCredits(known, now)
				known = a
			}
		}
	}
	if known.Credits == nil {
		return out, errors.New("no credits were measured in a day")
	}
	off := func(e probe.Estimate, want float64) float64 {
		if !e.Known() || e.AtLeast {
			return 100
		}
		return 100 * math.Abs(e.Value/want-1)
	}
	c := known.Credits
	out.baseline, out.burst, out.bucket = off(c.Baseline, float64(in.baseline)), off(c.Burst, float64(in.burst)), off(c.Bucket, float64(in.bucket))
	out.emptied = len(c.Found)
	return out, nil
}

// passes is what passes at the burst rate from a full bucket.
func (in instance) passes() float64 {
	return float64(in.bucket) / (1 - float64(in.baseline)/float64(in.burst))
}

// use is what the host itself sends before a measurement, half of the time, and its silence then.
func (p *creditsPath) use(d *bench.Draw, in instance) {
	p.Idle(time.Minute)
	if d.Uniform(0, 1) < 0.5 {
		p.Send(probe.Uniform("", 1+int(d.Uniform(0, float64(min(in.bucket, 100_000_000))))/1514, 1500, in.burst/2))
		p.Idle(d.Duration(time.Millisecond, time.Second))
	}
}

// measure measures one direction, as the command does.
func (p *creditsPath) measure(ctx context.Context, what string, bytes unit.Bytes, limit time.Duration) (path.Answer, error) {
	parts, _ := path.PartsOf(what)
	m := path.Method{Parts: parts, Budget: bytes}
	send := func(_ context.Context, t probe.Train) (probe.Sample, error) {
		p.Idle(p.silence)
		return p.Send(t), ctx.Err()
	}
	samples, err := path.Run(ctx, m.Next, send, time.Minute, func(*probe.Sample) {})
	if err != nil {
		return path.Answer{}, err
	}
	a := m.Estimate(samples)
	if parts.Credits {
		err = m.Drain(ctx, samples, &a, send, limit, func(*probe.Sample) {})
	}
	return a, err
}
