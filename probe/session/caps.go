package session

import (
	"context"
	"fmt"
	"math"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// allowance is what a session has left of its caps.
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

// duration is how long a train takes to send, if it leaves as it should.
func duration(t probe.Train) time.Duration {
	ns := 0.0
	for _, p := range t.Parts {
		ns += float64(p.Pause) + float64(p.Count)*p.Gap()
	}
	return time.Duration(math.Min(ns, float64(forever)))
}

// forever is longer than any session: a train at 1 bit/s takes more than a Duration
// holds.
const forever = 100 * 365 * 24 * time.Hour

// check tells what forbids a train; it counts nothing. wait is how long it must wait
// because of what was sent within the last second.
func (a *allowance) check(t probe.Train, now time.Time) (wait time.Duration, err error) {
	if err := t.Check(); err != nil {
		return 0, err
	}
	bytes, took := t.Bytes(), duration(t)
	if a.spent+bytes > a.caps.Bytes {
		return 0, fmt.Errorf("the train has %s, and this session has %s left of %s", bytes, a.caps.Bytes-a.spent, a.caps.Bytes)
	}
	if now.Add(took).After(a.ends) {
		return 0, fmt.Errorf("the train takes %v, and this session has %v left of %v", took.Round(time.Millisecond), time.Until(a.ends).Round(time.Millisecond), a.caps.Time)
	}
	// In the busiest second of a train with pauses is no more than in all of it.
	perSecond := unit.Bytes(a.caps.Rate / 8)
	if rate := float64(bytes) / max(1, took.Seconds()); rate > float64(perSecond) && busiest(t) > perSecond {
		return 0, fmt.Errorf("the train has %s within a second, and this server sends no faster than %s", busiest(t), a.caps.Rate)
	}
	used := busiest(t)
	for i := len(a.last) - 1; i >= 0; i-- {
		if used += a.last[i].bytes; used > perSecond {
			return time.Until(a.last[i].at.Add(time.Second)), nil
		}
	}
	return 0, nil
}

// busiest is what a train sends in a second at the most: a part's packets are as far
// apart as its rate says, and parts as their pauses do.
func busiest(t probe.Train) unit.Bytes {
	var total, most unit.Bytes
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
		most = max(most, total)
	}
	return most
}

// await waits until a train may be sent, and counts it.
func (a *allowance) await(ctx context.Context, t probe.Train) error {
	for {
		wait, err := a.check(t, time.Now())
		if err != nil {
			return err
		}
		if wait <= 0 {
			a.take(t, time.Now())
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// take counts a train that is sent now.
func (a *allowance) take(t probe.Train, now time.Time) {
	a.spent += t.Bytes()
	for len(a.last) > 0 && now.Sub(a.last[0].at) > time.Second {
		a.last = a.last[1:]
	}
	a.last = append(a.last, sending{now, t.Bytes()})
}
