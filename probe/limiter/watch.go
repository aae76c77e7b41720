package limiter

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Watch measures a path again and again, within a given budget. It detects tokens that
// are granted in addition to the rate (4.5.2: every 20 s), and changes of the rate. Each
// train empties the bucket and shows the rate for a short time. Bytes beyond the tokens
// that the bucket should have held are a token grant.
type Watch struct {
	// Budget bounds the layer 2 bytes of all trains; 0 is 100 MB.
	Budget unit.Bytes
	// Time is the duration; 0 is 65 s: three token grants 20 s apart, and one more
	// interval.
	Time time.Duration
	// Every is the time between trains, if the budget allows; 0 is 1 s.
	Every time.Duration
}

// Constants chosen by Headgate.
const (
	watchBudget = 100_000_000
	watchTime   = 65 * time.Second
	watchEvery  = time.Second
	// watchTail is the number of packets that show the rate once the bucket is empty.
	watchTail = 150
	// searching is the fraction of the budget for finding the bucket size.
	searching = 0.25
	// minGrant and minGrantPackets are the minimum of a token grant, as a fraction of the
	// bucket size and in packets.
	minGrant, minGrantPackets = 0.1, 20
	// maxDoublings bounds the search for the end of a token grant; after that, the limit
	// is gone.
	maxDoublings = 6
	// changed is the minimum relative change of a rate.
	changed = 0.05

	purposeWatch = "limiter/watch"
)

// WatchResult is the result of a Watch.
type WatchResult struct {
	Cannot string `json:"cannot_tell,omitempty"`
	// Took is the duration in seconds, Bytes the bytes that were sent.
	Took  float64    `json:"seconds"`
	Bytes unit.Bytes `json:"bytes"`
	// Levels has the rate at which each train ended.
	Levels      []Level      `json:"levels,omitempty"`
	Changes     []Change     `json:"changes,omitempty"`
	TokenGrants *TokenGrants `json:"gifts,omitempty"`
}

// Level is a rate at a time, in bit/s and in seconds since the first packet.
type Level struct {
	At   float64 `json:"at"`
	Rate float64 `json:"rate"`
}

// Change is a change of the rate, between the times After and At.
type Change struct {
	After float64 `json:"after"`
	At    float64 `json:"at"`
	From  float64 `json:"from"`
	To    float64 `json:"to"`
}

// TokenGrants are tokens that were granted in addition to the rate.
type TokenGrants struct {
	// Every is the interval between token grants in seconds, Size the size of one in bytes.
	Every probe.Estimate `json:"every"`
	Size  probe.Estimate `json:"size"`
	// At has the seconds at which the token grants were found; each was made since the
	// previous train.
	At []float64 `json:"at"`
}

// Next returns the next train for the samples so far. ok is false when the time or the
// budget is used up.
func (m Watch) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	budget, span := cmp.Or(m.Budget, watchBudget), cmp.Or(m.Time, watchTime)
	spent := unit.Bytes(0)
	for i := range samples {
		spent += samples[i].Bytes()
	}
	e := newEvidence(samples, 0, fullFrame)
	took := 0.0
	if n := len(e.trains); n > 0 {
		v := &e.trains[n-1]
		took = v.sent[len(v.sent)-1]
	}
	if took >= float64(span) {
		return t, false
	}
	count, pause := m.plan(e, budget, spent, float64(span)-took)
	t = probe.Uniform(purposeWatch, count, mtu, 0)
	t.Once, t.Parts[0].Pause = true, pause
	if e.overflowed() {
		t.Parts[0].Rate = e.pace()
	}
	return t, spent+t.Bytes() <= budget
}

// plan returns the number of packets to send, and the pause before them.
func (m Watch) plan(e *evidence, budget, spent unit.Bytes, left float64) (count int, pause time.Duration) {
	if len(e.tails) == 0 {
		return firstCount, 0
	}
	last := &e.tails[len(e.tails)-1]
	whole := e.wholeTrain()
	if missed := e.unemptiedTrains(len(e.tails) - 1); whole == 0 || missed > 0 && missed <= maxDoublings {
		// The end of the bucket, or of a token grant, was not found yet.
		count = 2 * len(last.v.sent)
		if bytes := float64(count * full); whole == 0 && float64(spent)+bytes <= searching*float64(budget) || whole > 0 && bytes <= searching*float64(budget-spent) {
			return count, 0
		}
	}
	if whole == 0 {
		whole = firstCount
	}
	every := math.Max(float64(cmp.Or(m.Every, watchEvery)), left*float64(whole*full)/math.Max(float64(budget-spent), 1))
	used := last.v.at[len(last.v.at)-1] - last.v.at[0]
	return whole, time.Duration(math.Max(every-used, 0))
}

// emptiedBucket reports whether a train emptied the bucket.
func (e *evidence) emptiedBucket(t *tail) bool {
	return t != nil && t.limited() && t.served() < slower*e.link
}

// unemptiedTrains returns the number of trains in a row, up to train i, that did not empty the
// bucket.
func (e *evidence) unemptiedTrains(i int) (n int) {
	for ; i >= 0 && !e.emptiedBucket(&e.tails[i]); i-- {
		n++
	}
	return n
}

// wholeTrain returns the number of packets that empty the bucket and show the rate: one
// and a half times those of the first train that did, with the trains before it that did
// not. It returns 0 if no train emptied the bucket.
func (e *evidence) wholeTrain() int {
	before := 0
	for i := range e.tails {
		t := &e.tails[i]
		if e.emptiedBucket(t) && len(t.v.at)-t.knee >= watchTail {
			return (before+t.knee)*3/2 + watchTail
		}
		before += len(t.v.sent)
	}
	return 0
}

// Estimate returns the token grants and the changes of the rate.
func (m Watch) Estimate(samples []probe.Sample) WatchResult {
	e := newEvidence(samples, 0, fullFrame)
	w := WatchResult{}
	for i := range samples {
		w.Bytes += samples[i].Bytes()
	}
	if len(e.tails) == 0 {
		w.Cannot = fmt.Sprintf("fewer than %d packets of any train arrived", minArrivals)
		return w
	}
	start := e.tails[0].v.sent[0]
	second := func(t *tail) float64 { return (t.v.sent[0] - start) / 1e9 }
	last := &e.tails[len(e.tails)-1]
	w.Took = second(last)
	for i := range e.tails {
		if t := &e.tails[i]; e.emptiedBucket(t) || e.unemptiedTrains(i) > maxDoublings {
			w.Levels = append(w.Levels, Level{second(t), t.served()})
		}
	}
	if e.wholeTrain() == 0 {
		w.Cannot = "no train found a limit: the rate was at least the rate of arrival, and extra tokens cannot be detected"
		w.Levels = nil
		for i := range e.tails {
			w.Levels = append(w.Levels, Level{second(&e.tails[i]), e.tails[i].rate})
		}
	}
	w.Changes = changes(w.Levels)
	if w.Cannot == "" {
		w.TokenGrants = e.tokenGrants(second)
	}
	return w
}
