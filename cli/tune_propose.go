package cli

import (
	"fmt"
	"math"

	"headgate/probe"
	"headgate/probe/path"
	"headgate/probe/tune"
	"headgate/shaper/htb"
	"headgate/unit"
)

// Constants of tune, chosen by Headgate.
const (
	// tuneBudget is enough to empty a bucket of 5 MB behind a link that is twice as fast as
	// the token rate: each train doubles, and the last has 19 MB, half of which fills the
	// bucket. With half of this budget, nothing was left after three trains that a busy host
	// did not send evenly.
	tuneBudget unit.Bytes = 100_000_000
	// agreement is the largest relative difference of two trains that agree: half of the margin.
	agreement = 0.005
)

// agreed reports whether the last two trains give the same token rate. Longer trains would
// give the same, and with a short queue at the provider most of their packets would be lost:
// the few packets in the queue never form the long tail that the method waits for.
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

// propose derives a limit from a measurement. own is the device's limit in force during the
// measurement, 0 without one.
func propose(a *path.Answer, dev string, own unit.Rate, margin unit.Share, budget unit.Bytes) tune.Proposal {
	return tune.Direction{
		Dev: dev, DeviceLimit: own, Margin: margin, Bytes: budget, Burst: tuneBurst,
		WithoutLimitHint: fmt.Sprintf("run \"headgate clear --dev %s\"", dev),
		LargerBudgetHint: func(bytes unit.Bytes) string { return fmt.Sprintf("write --bytes %s", bytes) },
	}.Propose(a)
}

// tuneBurst is the burst of a limit, for the common MTU of 1500 bytes.
func tuneBurst(limit unit.Rate) unit.Bytes { return htb.Burst(limit, 1500) }
