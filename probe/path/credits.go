package path

import (
	"context"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/credits"
	"headgate.dev/headgate/probe/tokenrate"
)

// Drain measures the burst credits of a path, and adds them to the answer for the samples before it, which has the capacity. limit bounds the time. seen is
// called for each sample. A sample is evaluated at once and not kept: a measurement may send gigabytes. Beside an error the answer has what was measured before it.
func (m Method) Drain(ctx context.Context, samples []probe.Sample, a *Answer, send Send, limit time.Duration, seen func(*probe.Sample)) error {
	d := credits.Method{Capacity: m.drainable(a), Budget: m.budget(), Time: limit}
	if d.Capacity == 0 {
		why := probe.NoEstimate("the capacity is not known: " + a.Capacity.Reason)
		a.Credits = &credits.Result{Burst: *a.Capacity, Baseline: why, Bucket: why}
		return nil
	}
	passed := passages(samples, d.Capacity)
	for {
		t, ok := d.Next(passed)
		if !ok {
			a.setCredits(d.Estimate(passed, *a.Capacity))
			return nil
		}
		s, err := send(ctx, t)
		if err != nil {
			a.setCredits(d.Estimate(passed, *a.Capacity))
			return err
		}
		passed = append(passed, credits.Read(&s, d.Capacity))
		a.Bytes += s.Bytes() + s.Again
		seen(&s)
	}
}

// drainable returns the capacity of an answer, 0 if it is not known.
func (m Method) drainable(a *Answer) float64 {
	if c := a.Capacity; c != nil && c.Known() {
		return c.Value
	}
	return 0
}

// replayCredits adds the burst credits that the samples of a log show.
func (m Method) replayCredits(a *Answer, samples []probe.Sample) {
	if d := (credits.Method{Capacity: m.drainable(a)}); d.Capacity > 0 {
		a.setCredits(d.Estimate(passages(samples, d.Capacity), *a.Capacity))
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
	if a.Credits != nil && before.Credits != nil {
		a.setCredits(a.Credits.Add(*before.Credits, at))
	}
}

// setCredits adds burst credits to an answer. Their baseline and bucket are the token rate and the bucket of a long transfer, of full packets.
func (a *Answer) setCredits(r credits.Result) {
	a.Credits, a.Packet = &r, max(a.Packet, fullPacket)
	a.LayerThree = float64(a.Packet) / float64(a.Packet+probe.Overhead)
	a.TokenRate = &tokenrate.Result{Rate: r.Baseline, Bucket: r.Bucket, Held: r.Held, HeldSeconds: r.HeldSeconds}
}
