package cli

import (
	"fmt"
	"math"

	"headgate/probe"
	"headgate/probe/path"
	"headgate/shaper/htb"
	"headgate/unit"
)

// proposal is what a direction's measurement says of its limit.
type proposal struct {
	// Limit is what is proposed, 0 if nothing is, for the reason in Cannot.
	Limit  unit.Rate `json:"limit,omitempty"`
	Cannot string    `json:"cannot_tell,omitempty"`
	// Before is the configuration's limit now, if there is one.
	Before unit.Rate `json:"before,omitempty"`
	// Notes are what to know before it is used.
	Notes []string `json:"notes,omitempty"`
}

// Constants of tune, ours.
const (
	// tuneMargin below the lower end of the token rate's interval, which is some 0.2 %
	// below its value: 99 % of what the provider gives, and the bucket never empties.
	tuneMargin = unit.Whole / 100
	// tuneBudget empties a bucket of 5 MB behind a link that is twice as fast as the
	// token rate: the trains double, and the last has 19 MB of which half is the
	// bucket's. With half of it three trains that a busy host could not send evenly
	// left nothing.
	tuneBudget unit.Bytes = 100_000_000
	// ownLimit: a rate above this part of the device's own limit is that limit.
	ownLimit = 0.97
	// agreement of two trains: half of the margin.
	agreement = 0.005
	// wideInterval is one whose lower end gives away that part of the rate.
	wideInterval = 0.03
)

// agreed tells whether the last two trains say the same token rate. Longer ones
// would find no other, and where the provider's queue is short they would all be
// loss: its few packets never are the long tail that the method waits for.
func agreed(m path.Method, samples []probe.Sample) bool {
	n := len(samples)
	if n < 2 {
		return false
	}
	last, before := m.Estimate(samples).TokenRate, m.Estimate(samples[:n-1]).TokenRate
	if last == nil || before == nil {
		return false
	}
	a, b := last.Rate, before.Rate
	return a.Known() && b.Known() && !a.AtLeast && !b.AtLeast && math.Abs(a.Value/b.Value-1) <= agreement
}

// propose reads a limit from a measurement. own is the device's limit in force while
// that was made, 0 if there was none.
func propose(a *path.Answer, dev string, own unit.Rate, margin unit.Share, budget unit.Bytes) (p proposal) {
	switch {
	case a == nil:
		p.Cannot = "it was not measured"
		return p
	case a.TokenRate == nil:
		p.Cannot = "the token rate was not measured"
		return p
	}
	r := a.TokenRate.Rate
	switch {
	case own > 0 && sawOwn(a, own):
		p.Cannot = fmt.Sprintf("the measurement goes through %s, and its own limit of %v is all that it met: the path gives at least that. \"headgate clear --dev %[1]s\" takes the limit away, to see what it gives", dev, own)
	case !r.Known():
		p.Cannot = cannotTune(a, budget)
	case r.AtLeast:
		p.Cannot = fmt.Sprintf("the token rate is at least %s, and may be more: others used the path; measure when they do not", bitRate(r.Value))
	default:
		p.Limit = below(lowEnd(r), margin)
		p.Notes = tuneNotes(a, r, p.Limit)
	}
	return p
}

// sawOwn tells whether what was measured is the device's own limit.
func sawOwn(a *path.Answer, own unit.Rate) bool {
	if r := a.TokenRate.Rate; r.Known() {
		return math.Max(r.High, r.Value) >= ownLimit*float64(own)
	}
	if j := a.TokenRate.Joint; j != nil {
		return j.Rate >= ownLimit*float64(own)
	}
	return false
}

// cannotTune says why nothing is proposed, and what would help.
func cannotTune(a *path.Answer, budget unit.Bytes) string {
	text := "cannot tell the token rate: " + a.TokenRate.Rate.Cannot
	if j := a.TokenRate.Joint; j != nil {
		text += fmt.Sprintf(". The path gives at least %s, or has a bucket that %s do not empty: write --bytes %s to empty a larger one; if it is nothing but a link, write its rate as the limit yourself, and 1 or 2 %% less",
			bitRate(j.Rate), j.Bytes, 4*budget)
	}
	return text
}

func lowEnd(r probe.Estimate) float64 {
	if r.Low > 0 {
		return math.Min(r.Low, r.Value)
	}
	return r.Value
}

// below is a rate less a margin, with four digits, rounded down.
func below(rate float64, margin unit.Share) unit.Rate {
	v := rate * (1 - float64(margin)/float64(unit.Whole))
	if v < 1 {
		return 0
	}
	step := math.Pow(10, math.Floor(math.Log10(v))-3)
	return unit.Rate(math.Floor(math.Floor(v/step)*step + 0.5))
}

func tuneNotes(a *path.Answer, r probe.Estimate, limit unit.Rate) (notes []string) {
	if low := lowEnd(r); low < r.Value*(1-wideInterval) {
		notes = append(notes, fmt.Sprintf("the token rate may be anything from %s to %s, and the limit is below the least of it: measure again when the path is quiet", bitRate(low), bitRate(r.High)))
	}
	const mtu = 1500
	burst := htb.Burst(limit, mtu)
	if b := a.TokenRate.Bucket; b.Known() && b.Value < float64(burst) {
		notes = append(notes, fmt.Sprintf("the provider's bucket (%s) is smaller than the %s that Headgate sends at once: if the provider drops what exceeds it, and does not queue it, some of that is lost", estimateText(b, sizeText), burst))
	}
	return notes
}
