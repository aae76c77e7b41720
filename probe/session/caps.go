package session

import (
	"context"
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// allowance is the remainder of a session's caps.
type allowance struct {
	caps  Caps
	ends  time.Time
	spent unit.Bytes
	last  []sending // within the last second
}

type sending struct {
	at    time.Time
	bytes unit.Bytes
}

// duration returns the time that a train takes if it is sent on schedule.
func duration(t probe.Train) time.Duration {
	ns := 0.0
	for _, p := range t.Parts {
		ns += float64(p.Pause) + float64(p.Count)*p.Gap()
	}
	return time.Duration(math.Min(ns, float64(maxDuration)))
}

// maxDuration is longer than any session. A train at 1 bit/s takes more than a Duration
// holds.
const maxDuration = 100 * 365 * 24 * time.Hour

// check returns an error if the caps forbid train t. wait is how long t must be delayed
// because of the trains within the last second. check does not count t.
func (a *allowance) check(t probe.Train, now time.Time) (wait time.Duration, err error) {
	if err := t.Check(); err != nil {
		return 0, err
	}
	bytes, took := t.Bytes(), duration(t)
	if a.spent+bytes > a.caps.Bytes {
		return 0, fmt.Errorf("train of %s exceeds the byte cap of the session: %s left of %s", bytes, a.caps.Bytes-a.spent, a.caps.Bytes)
	}
	if now.Add(took).After(a.ends) {
		return 0, fmt.Errorf("train of %v exceeds the time cap of the session: %v left of %v", took.Round(time.Millisecond), time.Until(a.ends).Round(time.Millisecond), a.caps.Time)
	}
	// The busiest second of a train with pauses has at most all of its bytes.
	perSecond := unit.Bytes(a.caps.Rate / 8)
	if rate := float64(bytes) / max(1, took.Seconds()); rate > float64(perSecond) && busiest(t) > perSecond {
		return 0, fmt.Errorf("train has %s within one second and exceeds the rate cap of the server: %s", busiest(t), a.caps.Rate)
	}
	used := busiest(t)
	for i := len(a.last) - 1; i >= 0; i-- {
		if used += a.last[i].bytes; used > perSecond {
			return time.Until(a.last[i].at.Add(time.Second)), nil
		}
	}
	return 0, nil
}

// busiest returns an upper bound for the bytes of a train within one second. The rate of
// each part spaces its packets, and the pauses space the parts.
func busiest(t probe.Train) unit.Bytes {
	var total, largest unit.Bytes
	var at []float64 // the end of each part
	var bytes []unit.Bytes
	now, first := 0.0, 0
	for _, p := range t.Parts {
		now += float64(p.Pause) + float64(p.Count)*p.Gap()
		b := unit.Bytes(p.Count * p.Frame())
		if took := float64(p.Count) * p.Gap(); took > 1e9 {
			b = unit.Bytes(float64(b) / took * 1e9)
		}
		at, bytes, total = append(at, now), append(bytes, b), total+b
		for first < len(at)-1 && at[first] < now-1e9 {
			total -= bytes[first]
			first++
		}
		largest = max(largest, total)
	}
	return largest
}

// await waits until the caps allow train t, and counts t.
func (a *allowance) await(ctx context.Context, t probe.Train) error {
	for {
		wait, err := a.check(t, time.Now())
		if err != nil {
			return err
		}
		if wait <= 0 {
			a.count(t, time.Now())
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// count counts a train that is sent now.
func (a *allowance) count(t probe.Train, now time.Time) {
	a.spent += t.Bytes()
	for len(a.last) > 0 && now.Sub(a.last[0].at) > time.Second {
		a.last = a.last[1:]
	}
	a.last = append(a.last, sending{now, t.Bytes()})
}
