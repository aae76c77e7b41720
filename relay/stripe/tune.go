package stripe

import "time"

// Constants of Tuner, chosen for Headgate.
const (
	// gain is by how much more a path must deliver for twice the streams to stay. It is above the noise of an
	// epoch's goodput: CUBIC's period is seconds.
	gain = 0.05
	// keep is by how much less than the best a path may deliver with fewer streams.
	keep = 0.015
	// change is by how much the goodput must change for the number to be tried again before its time.
	change = 0.15
	// minHold and maxHold are for how many epochs a number stays before others are tried again. The time doubles
	// while it stays the best.
	minHold, maxHold = 15, 240
	// few streams cost nothing, and fewer are not worth a trial: those that end take their windows with them. On 1 Gbit/s
	// and 54 ms, 3 streams after 8 delivered 500 to 640 Mbit/s for an epoch.
	few = 4
)

// Epoch returns for how long a number of streams is tried on a path: twenty round-trip times, and two seconds at
// least.
func Epoch(rtt time.Duration) time.Duration { return max(2*time.Second, 20*rtt) }

// FirstEpoch returns for how long a path must have been busy before anything is tried on it: what ends earlier gains
// nothing from a trial, and four round-trip times are most of a slow start. With a whole Epoch, 600 ms began their second
// congestion control after 12 s.
func FirstEpoch(rtt time.Duration) time.Duration { return max(2*time.Second, 4*rtt) }

// Measured is what an epoch of a path has shown.
type Measured struct {
	Goodput float64 // bytes per second
	// Busy is false if the path did not always have something to send: such an epoch says nothing.
	Busy bool
	// Full is true if the path's queue was never empty and hardly anything was lost: nothing can deliver more, and each
	// trial costs.
	Full bool
}

// Tuner finds the number of streams of a path: the fewest that deliver what more of them would. The thesis picked it
// by hand (100 for 1 Gbit/s at 1 % of loss, 5 where 100 cost 14 %), and names the signs of too many as future work.
// What decides here is what all signs lead to, the goodput: the number doubles while that helps, and falls while
// that costs nothing.
type Tuner struct {
	// Min and Max bound the number.
	Min, Max int

	n        int
	phase    phase
	best     float64 // goodput of the number to return to
	bestN    int
	hold     int // epochs until others are tried
	holdFor  int
	held     float64 // goodput in the epochs of hold, smoothed
	measured bool
}

type phase int

const (
	growing phase = iota
	shrinking
	holding
)

// NewTuner returns a tuner that begins with a number of streams.
func NewTuner(least, most, first int) *Tuner {
	return &Tuner{Min: least, Max: most, n: min(max(first, least), most), holdFor: minHold}
}

// Streams returns the number of streams.
func (t *Tuner) Streams() int { return t.n }

// Observe takes an epoch, and chooses the number for the next one.
func (t *Tuner) Observe(m Measured) {
	if !m.Busy {
		return
	}
	goodput := m.Goodput
	switch t.phase {
	case growing:
		if !t.measured {
			t.measured = true
			t.accept(goodput)
			t.growUnless(m.Full)
			return
		}
		if goodput > t.best*(1+gain) {
			t.accept(goodput)
			t.growUnless(m.Full)
			return
		}
		t.best = max(t.best, goodput)
		t.n = t.bestN
		t.fewer()
	case shrinking:
		if goodput >= t.best*(1-keep) {
			t.bestN = t.n
			t.best = max(t.best, goodput)
			t.fewer()
			return
		}
		t.n = t.bestN
		t.rest()
	case holding:
		if t.held == 0 {
			t.held = goodput
		}
		changed := goodput < t.held*(1-change) || goodput > t.held*(1+change)
		t.held += (goodput - t.held) / 4
		if t.hold--; t.hold > 0 && !changed {
			return
		}
		if changed {
			t.holdFor = minHold
		} else {
			t.holdFor = min(2*t.holdFor, maxHold)
		}
		t.best, t.bestN = t.held, t.n
		t.growUnless(m.Full)
	}
}

func (t *Tuner) accept(goodput float64) { t.best, t.bestN = goodput, t.n }

// growUnless tries twice as many streams, unless the path is full: then it has enough.
func (t *Tuner) growUnless(full bool) {
	if full {
		t.fewer()
	} else {
		t.grow()
	}
}

// fewer tries fewer streams, if there are many.
func (t *Tuner) fewer() {
	if t.n > few {
		t.shrink()
	} else {
		t.rest()
	}
}

// grow tries twice as many streams.
func (t *Tuner) grow() {
	t.phase = growing
	if t.n = min(2*t.n, t.Max); t.n == t.bestN {
		t.shrink()
	}
}

// shrink tries a quarter fewer streams.
func (t *Tuner) shrink() {
	t.phase = shrinking
	if t.n = max(min(3*t.n/4, t.n-1), t.Min); t.n == t.bestN {
		t.rest()
	}
}

// rest keeps the number for some time.
func (t *Tuner) rest() {
	t.phase, t.hold, t.held = holding, t.holdFor, 0
}
