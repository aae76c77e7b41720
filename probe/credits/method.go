package credits

import (
	"math"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// Method is the measurement of one direction of a path.
type Method struct {
	// Capacity of the path, in bit/s of layer 2.
	Capacity float64
	// Budget bounds the layer 2 bytes of all trains, and Time the time from the first packet to the end.
	Budget unit.Bytes
	Time   time.Duration
}

// Constants of the trains, chosen by Headgate.
const (
	purpose      = "credits/"
	drainPurpose = purpose + "drain"
	holdPurpose  = purpose + "hold"
	// drainPart is the rate of trains as a part of the capacity (the seed's, 2.6.3). belowSent: what arrives at more than this part of the rate at which it was sent
	// was not limited.
	drainPart, belowSent = 7. / 8, 0.97
	// A train takes gapFactor times the silence before it, and between shortest and longest. A longer one would fill the queue before an empty bucket for longer.
	gapFactor         = 4
	shortest, longest = 20 * time.Millisecond, 500 * time.Millisecond
	// mostBytes bounds a train: the receiver holds it, and a server sends no more in a second by default.
	mostBytes = 100_000_000
	// holdPart is the rate of a held train relative to the rate that it confirms, and holdTime how long it takes. A head at headPart of the rate empties what the
	// bucket got since the last train.
	holdPart, headPart, holdTime = 1.07, 2.14, 200 * time.Millisecond
	// leastHold is how long a held train takes at least, where its head leaves few of the bytes of a train.
	leastHold = 50 * time.Millisecond
	// sameRate is the relative difference up to which two rates are the same. A train beside others' traffic is limited if the second half of it arrived at less than
	// sharedBelow of the rate at which it was sent.
	sameRate, sharedBelow = 0.01, 0.9
	// longestFill bounds a silence (probe.Train.Check).
	longestFill = time.Hour
	// fillFactor is how many times the bucket fills in the silence before the next round: others may use some of the tokens.
	fillFactor = 1.3
	// rounds is how often the bucket is emptied at most, and mostHolds how many trains may fail to confirm.
	rounds, mostHolds = 3, 4
	minPackets        = 60
)

const frame = 1500 + probe.Overhead

// round is the trains from a full bucket to the confirmed rate of a limiter.
type round struct {
	trains []Passage
	// limited is the index of the train that emptied the bucket, -1 if none did.
	limited int
	// confirmed is set if a train was held at the rate of that one.
	confirmed bool
	failed    int // trains that were not held
}

// split returns the rounds of a measurement.
func split(seen []Passage) (all []round) {
	for i, p := range seen {
		if i == 0 || p.Idle {
			all = append(all, round{limited: -1})
		}
		r := &all[len(all)-1]
		r.trains = append(r.trains, p)
		switch {
		case p.Hold && r.limited >= 0:
			if r.confirmed = confirms(p, r.trains[r.limited]); !r.confirmed {
				r.limited = -1 // others' traffic slowed that train
				r.failed++
			}
		case p.Limited && r.limited < 0:
			r.limited = len(r.trains) - 1
		}
	}
	return all
}

// confirms reports whether a train that was sent a little faster than a limited one ended met the same limiter. Others' traffic slows both at the queue of a link,
// where packets follow each other at the rate of the link.
func confirms(held, limited Passage) bool {
	if limited.Shared {
		return held.Limited && held.Limiter.Known()
	}
	return held.Limited && math.Abs(held.Rate/limited.Rate-1) <= sameRate
}

// rate returns the rate of the limiter with its interval, in bit/s of layer 2; ok is false if none is confirmed.
func rate(all []round) (r probe.Estimate, ok bool) {
	for _, one := range all {
		if !one.confirmed {
			continue
		}
		e := one.trains[one.limited].Limiter
		if one.shared() {
			e = one.trains[len(one.trains)-1].Limiter // the held train loses fewer packets
		}
		if !ok || e.High-e.Low < r.High-r.Low {
			r, ok = e, true
		}
	}
	return r, ok
}

// shared reports whether others' traffic used tokens, of a round with a limited train.
func (r round) shared() bool { return r.trains[r.limited].Shared }

// found returns what the bucket held before a round, in bytes of layer 2, given the rate at which tokens are added.
func (r round) found(rate float64) float64 {
	var used []tokenrate.Use
	for _, p := range r.trains[:r.limited+1] {
		used = append(used, tokenrate.Use{At: p.From, Passed: float64(p.Passed), Again: float64(p.AgainPassed)})
	}
	used[0].Again = 0 // the bucket fills again before a train that is sent again after a silence
	return tokenrate.Size(used, rate, r.trains[r.limited].Tokens)
}

// Next returns the next train after those that were seen, of which the first may be those of another method. ok is false if they suffice, or bytes or time do not.
func (m Method) Next(seen []Passage) (t probe.Train, ok bool) {
	fast := drainPart * m.Capacity
	left, remaining := m.Budget, m.Time.Seconds()
	for _, p := range seen {
		left -= min(left, p.Sent+p.Again)
	}
	if len(seen) == 0 {
		return m.train(drainPurpose, fast, fast*shortest.Seconds()/8, left)
	}
	last := seen[len(seen)-1]
	if first := slices.IndexFunc(seen, func(p Passage) bool { return p.Passed > 0 }); first >= 0 {
		remaining -= float64(last.To-seen[first].From) / 1e9
	}
	all := split(seen)
	now := all[len(all)-1]
	silence := silenceBefore(now.trains)
	switch {
	case remaining <= 0 || last.Passed == 0 || now.failed >= mostHolds:
		return t, false
	case now.limited < 0:
		long := math.Min(math.Max(gapFactor*silence, shortest.Seconds()), longest.Seconds())
		return m.train(drainPurpose, fast, fast*math.Min(long, remaining)/8, left)
	case !now.confirmed:
		return m.hold(now.trains[now.limited].Rate, silence, remaining, left)
	case len(all) >= rounds || now.shared() || alike(contents(all)) > 0:
		return t, false
	}
	r, _ := rate(all)
	size := now.found(r.Value)
	fill := fillFactor * size * 8 / r.Value
	need := size / (1 - r.Value/fast)
	if fill+need*8/fast > remaining || secondsOf(fill) > longestFill || unit.Bytes(need*1.1) > left {
		return t, false
	}
	t, ok = m.train(drainPurpose, fast, math.Min(fast*shortest.Seconds()/8, need/2), left)
	t.Parts[0].Pause = max(1, secondsOf(fill))
	return t, ok
}

// silenceBefore is the longer of the last two silences between trains of a round in s: the next is likely to be as long.
func silenceBefore(trains []Passage) (s float64) {
	for i := max(1, len(trains)-2); i < len(trains); i++ {
		s = math.Max(s, float64(trains[i].From-trains[i-1].To)/1e9)
	}
	return s
}

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// train returns a train of so many bytes, or as many as are left.
func (m Method) train(purpose string, rate, bytes float64, left unit.Bytes) (t probe.Train, ok bool) {
	count := int(math.Min(math.Min(bytes, mostBytes), float64(left))) / frame
	if count < minPackets && bytes >= minPackets*frame {
		return t, false // nothing is left
	}
	t = probe.Uniform(purpose, max(count, minPackets), frame-probe.Overhead, unit.Rate(rate))
	t.Once = true
	return t, t.Bytes() <= left
}

// hold returns the train that confirms a rate, within a time in s and bytes.
func (m Method) hold(rate, silence, remaining float64, left unit.Bytes) (t probe.Train, ok bool) {
	fast := math.Min(headPart*rate, drainPart*m.Capacity)
	fast = math.Max(fast, holdPart*rate)
	head := int(1.5*rate/8*silence/(1-rate/fast))/frame + 2
	enough := max(int(holdPart*rate/8*leastHold.Seconds())/frame, minPackets)
	held := max(min(int(holdPart*rate/8*holdTime.Seconds())/frame, mostBytes/frame-head), enough)
	t = probe.Train{Purpose: holdPurpose, Once: true, Parts: []probe.Part{
		{Count: head, Size: frame - probe.Overhead, Rate: unit.Rate(fast)},
		{Count: held, Size: frame - probe.Overhead, Rate: unit.Rate(holdPart * rate)},
	}}
	return t, t.Bytes() <= min(left, mostBytes) && float64(t.Bytes())*8/rate <= remaining
}

// contents returns what each round found in the bucket, in bytes of layer 2.
func contents(all []round) (out []float64) {
	r, ok := rate(all)
	if !ok {
		return nil
	}
	for _, one := range all {
		if one.confirmed && !one.shared() {
			out = append(out, one.found(r.Value))
		}
	}
	return out
}
