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

// Constants of tune, ours.
const (
	// tuneBudget empties a bucket of 5 MB behind a link that is twice as fast as the
	// token rate: the trains double, and the last has 19 MB of which half is the
	// bucket's. With half of it three trains that a busy host could not send evenly
	// left nothing.
	tuneBudget unit.Bytes = 100_000_000
	// agreement of two trains: half of the margin.
	agreement = 0.005
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
func propose(a *path.Answer, dev string, own unit.Rate, margin unit.Share, budget unit.Bytes) tune.Proposal {
	return tune.Direction{
		Dev: dev, Own: own, Margin: margin, Bytes: budget, Burst: tuneBurst,
		Without: fmt.Sprintf("\"headgate clear --dev %s\" takes the limit away", dev),
		More:    func(bytes unit.Bytes) string { return fmt.Sprintf("write --bytes %s", bytes) },
	}.Propose(a)
}

// tuneBurst is what a limit lets through at once, with packets as large as almost everywhere.
func tuneBurst(limit unit.Rate) unit.Bytes { return htb.Burst(limit, 1500) }
