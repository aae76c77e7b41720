package tune

import (
	"fmt"
	"math"

	"headgate/probe"
	"headgate/probe/path"
	"headgate/unit"
)

// Proposal is what a direction's measurement says of its limit.
type Proposal struct {
	// Limit is what is proposed, 0 if nothing is, for the reason in Cannot.
	Limit  unit.Rate `json:"limit,omitempty"`
	Cannot string    `json:"cannot_tell,omitempty"`
	// Before is the configuration's limit now, if there is one.
	Before unit.Rate `json:"before,omitempty"`
	// Notes are what to know before it is used.
	Notes []string `json:"notes,omitempty"`
}

// Direction is that of a device whose limit is asked for.
type Direction struct {
	Dev string
	// Own is the device's limit in force while it was measured, 0 if there was none.
	Own unit.Rate
	// Margin is how far under the measured rate the limit is.
	Margin unit.Share
	// Bytes is what the measurement might have sent.
	Bytes unit.Bytes
	// Burst is what a limit lets through at once; nil is not known.
	Burst func(limit unit.Rate) unit.Bytes
	// Without says how to measure without the device's limit, and More how with more bytes than were
	// sent, each as a command or a setting.
	Without string
	More    func(bytes unit.Bytes) string
}

// Constants of tune, ours.
const (
	// Margin below the lower end of the token rate's interval, which is some 0.2 %
	// below its value: 99 % of what the provider gives, and the bucket never empties.
	Margin = unit.Whole / 100
	// ownLimit: a rate above this part of the device's own limit is that limit.
	ownLimit = 0.97
	// wideInterval is one whose lower end gives away that part of the rate.
	wideInterval = 0.03
)

// Propose reads a limit from a measurement.
func (d Direction) Propose(a *path.Answer) (p Proposal) {
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
	case d.Own > 0 && sawOwn(a, d.Own):
		p.Cannot = fmt.Sprintf("the measurement goes through %s, and its own limit of %v is all that it met: the path gives at least that. %s, to see what it gives", d.Dev, d.Own, d.Without)
	case !r.Known():
		p.Cannot = d.cannot(a)
	case r.AtLeast:
		p.Cannot = fmt.Sprintf("the token rate is at least %s, and may be more: others used the path; measure when they do not", probe.BitRate(r.Value))
	default:
		p.Limit = Below(lowEnd(r), d.Margin)
		p.Notes = d.notes(a, r, p.Limit)
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

// cannot says why nothing is proposed, and what would help.
func (d Direction) cannot(a *path.Answer) string {
	text := "cannot tell the token rate: " + a.TokenRate.Rate.Cannot
	if j := a.TokenRate.Joint; j != nil {
		text += fmt.Sprintf(". The path gives at least %s, or has a bucket that %s do not empty: %s to empty a larger one; if it is nothing but a link, write its rate as the limit yourself, and 1 or 2 %% less",
			probe.BitRate(j.Rate), j.Bytes, d.More(4*d.Bytes))
	}
	return text
}

func lowEnd(r probe.Estimate) float64 {
	if r.Low > 0 {
		return math.Min(r.Low, r.Value)
	}
	return r.Value
}

// Below is a rate less a margin, with four digits, rounded down.
func Below(rate float64, margin unit.Share) unit.Rate {
	v := rate * (1 - float64(margin)/float64(unit.Whole))
	if v < 1 {
		return 0
	}
	step := math.Pow(10, math.Floor(math.Log10(v))-3)
	return unit.Rate(math.Floor(math.Floor(v/step)*step + 0.5))
}

// notes are what to know of a limit.
func (d Direction) notes(a *path.Answer, r probe.Estimate, limit unit.Rate) (notes []string) {
	if low := lowEnd(r); low < r.Value*(1-wideInterval) {
		notes = append(notes, fmt.Sprintf("the token rate may be anything from %s to %s, and the limit is below the least of it: measure again when the path is quiet", probe.BitRate(low), probe.BitRate(r.High)))
	}
	if d.Burst == nil {
		return notes
	}
	burst := d.Burst(limit)
	if b := a.TokenRate.Bucket; b.Known() && b.Value < float64(burst) {
		notes = append(notes, fmt.Sprintf("the provider's bucket (%s) is smaller than the %s that Headgate sends at once: if the provider drops what exceeds it, and does not queue it, some of that is lost", b.Text(probe.SizeText), burst))
	}
	return notes
}
