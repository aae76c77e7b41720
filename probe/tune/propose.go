package tune

import (
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/unit"
)

// Proposal is the proposed limit for one direction.
type Proposal struct {
	// Limit is the proposed limit, or 0 if there is none, for the reason in Cannot.
	Limit  unit.Rate `json:"limit,omitempty"`
	Cannot string    `json:"cannot_tell,omitempty"`
	// Before is the current limit of the configuration, if there is one.
	Before unit.Rate `json:"before,omitempty"`
	// Notes are warnings about the proposal.
	Notes []string `json:"notes,omitempty"`
}

// Direction describes the device and the measurement for which a limit is proposed.
type Direction struct {
	Dev string
	// DeviceLimit is the limit of the device during the measurement, 0 if there was none.
	DeviceLimit unit.Rate
	// Margin is the fraction of the measured rate by which the limit is lower.
	Margin unit.Share
	// Bytes is the budget of the measurement.
	Bytes unit.Bytes
	// Burst returns the burst that a limit passes at once; nil means unknown.
	Burst func(limit unit.Rate) unit.Bytes
	// WithoutLimitHint is the command or setting for a measurement without the device's limit.
	// LargerBudgetHint returns the command or setting for a measurement with a larger budget.
	WithoutLimitHint string
	LargerBudgetHint func(bytes unit.Bytes) string
}

// Constants of the proposal, chosen by Headgate.
const (
	// Margin is the default margin below the lower end of the token rate's interval,
	// which is about 0.2 % below the estimate. At 99 % of the provider's rate the bucket
	// never empties.
	Margin = unit.Whole / 100
	// Budget is the default budget of a direction. It is enough to empty a bucket of 5 MB behind a link that
	// is twice as fast as the token rate: each train doubles, and the last has 19 MB, half of which fills the
	// bucket. With half of this budget, nothing was left after three trains that a busy host did not send
	// evenly.
	Budget unit.Bytes = 100_000_000
	// agreement is the largest relative difference of two trains that agree: half of the margin.
	agreement = 0.005
	// ownLimit: a rate above this fraction of the device's own limit is that limit.
	ownLimit = 0.97
	// wideInterval: an interval whose lower end is this fraction below the rate is wide.
	wideInterval = 0.03
)

// Propose computes a limit from a measurement.
func (d Direction) Propose(a *path.Answer) (p Proposal) {
	switch {
	case a == nil:
		p.Cannot = "direction was not measured"
		return p
	case a.TokenRate == nil:
		p.Cannot = "token rate was not measured"
		return p
	}
	r := a.TokenRate.Rate.WithoutCarried()
	switch {
	case d.DeviceLimit > 0 && measuredOwnLimit(a, d.DeviceLimit):
		p.Cannot = fmt.Sprintf("measurement through %s found only the device's own limit of %v: the path has at least that. %s to see the rate of the path", d.Dev, d.DeviceLimit, d.WithoutLimitHint)
	case !r.Known():
		p.Cannot = d.cannot(a)
	case r.AtLeast:
		p.Cannot = fmt.Sprintf("token rate is at least %s, and may be higher because of cross traffic: measure again when the path is idle", probe.FormatRate(r.Value))
	default:
		p.Limit = ReduceBy(lowEnd(r), d.Margin)
		p.Notes = d.notes(a, r, p.Limit)
	}
	return p
}

// measuredOwnLimit reports whether the measured rate is the device's own limit.
func measuredOwnLimit(a *path.Answer, own unit.Rate) bool {
	if r := a.TokenRate.Rate.WithoutCarried(); r.Known() {
		return math.Max(r.High, r.Value) >= ownLimit*float64(own)
	}
	if j := a.TokenRate.Joint; j != nil {
		return j.Rate >= ownLimit*float64(own)
	}
	return false
}

// cannot returns the reason why there is no proposal, and a remedy.
func (d Direction) cannot(a *path.Answer) string {
	text := "cannot estimate the token rate: " + a.TokenRate.Rate.WithoutCarried().Reason
	if j := a.TokenRate.Joint; j != nil {
		text += fmt.Sprintf(". The path has at least %s, or a bucket that %s do not empty: %s to empty a larger bucket. If the path is a link without a shaper, set the limit to 1 or 2 %% below the link's rate",
			probe.FormatRate(j.Rate), j.Bytes, d.LargerBudgetHint(4*d.Bytes))
	}
	return text
}

func lowEnd(r probe.Estimate) float64 {
	if r.Low > 0 {
		return math.Min(r.Low, r.Value)
	}
	return r.Value
}

// ReduceBy returns a rate less a margin, rounded down to four digits.
func ReduceBy(rate float64, margin unit.Share) unit.Rate {
	v := rate * (1 - float64(margin)/float64(unit.Whole))
	if v < 1 {
		return 0
	}
	step := math.Pow(10, math.Floor(math.Log10(v))-3)
	return unit.Rate(math.Floor(math.Floor(v/step)*step + 0.5))
}

// notes returns warnings about a limit.
func (d Direction) notes(a *path.Answer, r probe.Estimate, limit unit.Rate) (notes []string) {
	if low := lowEnd(r); low < r.Value*(1-wideInterval) {
		notes = append(notes, fmt.Sprintf("token rate is uncertain, from %s to %s, and the limit is below the lower end: measure again when the path is idle", probe.FormatRate(low), probe.FormatRate(r.High)))
	}
	if c := a.Credits; c != nil && !c.Bucket.AtLeast && c.Lasts() > 0 {
		notes = append(notes, fmt.Sprintf("limit is that of a transfer which has used the path's burst credits: after it was idle for %v the path has %s for %v, of which nothing is used with this limit",
			c.Fills().Round(time.Millisecond), probe.FormatRate(c.Burst.Value), c.Lasts().Round(time.Millisecond)))
	}
	if d.Burst == nil {
		return notes
	}
	burst := d.Burst(limit)
	if b := a.TokenRate.Bucket; b.Known() && b.Value < float64(burst) {
		notes = append(notes, fmt.Sprintf("bucket of the provider (%s) is smaller than Headgate's burst of %s: if the provider polices instead of shaping, part of a burst is dropped", b.Format(probe.FormatBytes), burst))
	}
	return notes
}

// Agreed reports whether the last two trains give the same token rate. Longer trains would
// give the same, and with a short queue at the provider most of their packets would be lost:
// the few packets in the queue never form the long tail that the method waits for.
func Agreed(m path.Method, samples []probe.Sample) bool {
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
