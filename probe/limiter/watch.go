package limiter

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// Watch looks at a path again and again, within a stated budget: it finds tokens that
// are given besides the rate (4.5.2: every 20 s), and when the rate changes. Each
// train empties the bucket and shows a little of the rate; what it got beyond what the
// bucket should have held was a gift.
type Watch struct {
	// Budget bounds what all trains send, in bytes of layer 2; 0 is 100 MB.
	Budget unit.Bytes
	// Time is for how long to watch; 0 is 65 s: three gifts of 20 s, and one interval
	// more.
	Time time.Duration
	// Every is the time between trains, if the budget allows; 0 is a second.
	Every time.Duration
}

// Constants, ours.
const (
	watchBudget = 100_000_000
	watchTime   = 65 * time.Second
	watchEvery  = time.Second
	// watchTail packets show the rate once the bucket is empty.
	watchTail = 150
	// searching is the part of the budget that may look for the bucket's end.
	searching = 0.25
	// beyond is what a gift has at least, as a part of the bucket and in packets.
	beyond, beyondPackets = 0.1, 20
	// mostDoublings look for a gift's end; after that there is no limit any more.
	mostDoublings = 6
	// changed is by how much a rate differs from what it was.
	changed = 0.05

	purposeWatch = "limiter/watch"
)

// Watched is what was seen.
type Watched struct {
	Cannot string `json:"cannot_tell,omitempty"`
	// Took is for how long, in seconds, and Bytes what it spent.
	Took  float64    `json:"seconds"`
	Bytes unit.Bytes `json:"bytes"`
	// Levels are the rate that each train ended at.
	Levels  []Level  `json:"levels,omitempty"`
	Changes []Change `json:"changes,omitempty"`
	Gifts   *Gifts   `json:"gifts,omitempty"`
}

// Level is a rate at a time, in bit/s and seconds from the first packet on.
type Level struct {
	At   float64 `json:"at"`
	Rate float64 `json:"rate"`
}

// Change is when the rate was another than before: between After and At.
type Change struct {
	After float64 `json:"after"`
	At    float64 `json:"at"`
	From  float64 `json:"from"`
	To    float64 `json:"to"`
}

// Gifts are tokens that were given besides the rate.
type Gifts struct {
	// Every is how far apart they are, in seconds, and Size what one has, in bytes.
	Every probe.Estimate `json:"every"`
	Size  probe.Estimate `json:"size"`
	// At are the seconds at which they were found; each was given since the train
	// before.
	At []float64 `json:"at"`
}

// Next is the train that comes after those that were sent, or ok is false when the
// time or the budget is over.
func (m Watch) Next(samples []probe.Sample) (t probe.Train, ok bool) {
	budget, span := cmp.Or(m.Budget, watchBudget), cmp.Or(m.Time, watchTime)
	spent := unit.Bytes(0)
	for i := range samples {
		spent += samples[i].Bytes()
	}
	e := newEvidence(samples, 0)
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
	t.Parts[0].Pause = pause
	if e.overflowed() {
		t.Parts[0].Rate = e.pace()
	}
	return t, spent+t.Bytes() <= budget
}

// plan is how many packets to send, and after what silence.
func (m Watch) plan(e *evidence, budget, spent unit.Bytes, left float64) (count int, pause time.Duration) {
	if len(e.tails) == 0 {
		return firstCount, 0
	}
	last := &e.tails[len(e.tails)-1]
	whole := e.wholeTrain()
	if missed := e.missed(len(e.tails) - 1); whole == 0 || missed > 0 && missed <= mostDoublings {
		// The bucket's end, or a gift's, is not yet seen.
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

// met tells whether a train emptied the bucket.
func (e *evidence) met(t *tail) bool {
	return t != nil && t.limited() && t.served() < slower*e.link
}

// missed is how many trains in a row, up to one, did not empty the bucket.
func (e *evidence) missed(i int) (n int) {
	for ; i >= 0 && !e.met(&e.tails[i]); i-- {
		n++
	}
	return n
}

// wholeTrain is how many packets empty the bucket and show the rate: half as many
// again as it took at first, with those before that looked for its end. It is 0 if none
// met it.
func (e *evidence) wholeTrain() int {
	before := 0
	for i := range e.tails {
		t := &e.tails[i]
		if e.met(t) && len(t.v.at)-t.knee >= watchTail {
			return (before+t.knee)*3/2 + watchTail
		}
		before += len(t.v.sent)
	}
	return 0
}

// Estimate says what came and what changed.
func (m Watch) Estimate(samples []probe.Sample) Watched {
	e := newEvidence(samples, 0)
	w := Watched{}
	for i := range samples {
		w.Bytes += samples[i].Bytes()
	}
	if len(e.tails) == 0 {
		w.Cannot = fmt.Sprintf("fewer than %d packets of any train arrived", leastArrivals)
		return w
	}
	start := e.tails[0].v.sent[0]
	second := func(t *tail) float64 { return (t.v.sent[0] - start) / 1e9 }
	last := &e.tails[len(e.tails)-1]
	w.Took = second(last)
	for i := range e.tails {
		if t := &e.tails[i]; e.met(t) || e.missed(i) > mostDoublings {
			w.Levels = append(w.Levels, Level{second(t), t.served()})
		}
	}
	if e.wholeTrain() == 0 {
		w.Cannot = "no train met a limit: the rate has been at least what came, and of gifts nothing can be seen"
		w.Levels = nil
		for i := range e.tails {
			w.Levels = append(w.Levels, Level{second(&e.tails[i]), e.tails[i].rate})
		}
	}
	w.Changes = changes(w.Levels)
	if w.Cannot == "" {
		w.Gifts = e.gifts(second)
	}
	return w
}
