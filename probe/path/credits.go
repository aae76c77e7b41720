package path

import (
	"context"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/credits"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// Drain measures the burst credits of a path, and adds them to the answer for the samples before it, which has the capacity. limit bounds the time. seen is
// called for each sample. A sample is evaluated at once and not kept: a measurement may send gigabytes. Beside an error the answer has what was measured before it.
func (m Method) Drain(ctx context.Context, samples []probe.Sample, a *Answer, send Send, limit time.Duration, seen func(*probe.Sample)) (failure error) {
	burst := m.burst(a)
	if !burst.Known() {
		why := probe.NoEstimate("the capacity is not known: " + burst.Reason)
		a.setCredits(credits.Result{Burst: burst, Baseline: why, Bucket: why})
		return nil
	}
	d := credits.Method{Capacity: burst.Value, Budget: m.budget(), Time: limit}
	passed := passages(samples, d.Capacity)
	begun := time.Now() // the receiver's clock may be set back
	for t, ok := d.Next(passed); ok && time.Since(begun) < limit; t, ok = d.Next(passed) {
		s, err := send(ctx, t)
		if err != nil {
			failure = err
			break
		}
		passed = append(passed, credits.Read(&s, d.Capacity))
		a.count(&s)
		seen(&s)
	}
	a.setCredits(d.Estimate(passed, burst))
	return failure
}

// burst returns the capacity, which is the rate of a burst.
func (m Method) burst(a *Answer) probe.Estimate {
	if c := a.Capacity; c != nil && c.Carried() { // trains that a limiter or others' traffic slowed
		return probe.NoEstimate(c.Because)
	} else if c != nil {
		return *c
	}
	c := float64(m.KnownCapacity)
	return probe.Estimate{Value: c, Low: c, High: c}
}

// replayCredits adds the burst credits that the samples of a log show.
func (m Method) replayCredits(a *Answer, samples []probe.Sample) {
	if burst := m.burst(a); burst.Known() {
		a.setCredits(credits.Method{Capacity: burst.Value}.Estimate(passages(samples, burst.Value), burst))
	}
}

// passages returns what samples showed.
func passages(samples []probe.Sample, capacity float64) (out []credits.Passage) {
	for i := range samples {
		out = append(out, credits.Read(&samples[i], capacity))
	}
	return out
}

// AddCredits joins the burst credits of an answer, which was measured at a time, with those of an earlier one of the same direction of a path.
func (a *Answer) AddCredits(before Answer, at time.Time) {
	if a.Credits == nil {
		return
	}
	was := credits.Result{}
	if before.Credits != nil {
		was = *before.Credits
	}
	a.setCredits(a.Credits.Add(was, at))
}

// setCredits adds burst credits to an answer. Their baseline and bucket are the token rate and the bucket of a long transfer.
func (a *Answer) setCredits(r credits.Result) {
	a.Credits = &r
	a.TokenRate = &tokenrate.Result{Rate: r.Baseline, Bucket: r.Bucket, Held: unit.Bytes(r.Held), HeldSeconds: r.HeldSeconds}
}
