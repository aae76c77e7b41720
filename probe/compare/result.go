package compare

import (
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Result is the ratio of two paths' capacities.
type Result struct {
	// Ratio is the capacity of the second sender's path divided by that of the first's,
	// for the parts of the paths before they meet. If a shaper's bucket is smaller than a
	// block, it is a ratio of token rates.
	Ratio probe.Estimate `json:"ratio"`
	// Roughly is the approximate ratio if cross traffic leaves no clear mode.
	Roughly *probe.Estimate `json:"roughly,omitempty"`
	// Block is the number of bytes that each sender sends in one block.
	Block unit.Bytes `json:"block,omitempty"`
	// Long is the ratio for blocks that find a bucket empty, if it differs.
	Long *probe.Estimate `json:"long,omitempty"`
	// SharedNarrow is set if the shared part of the paths is no faster than the faster
	// path.
	SharedNarrow bool     `json:"shared_narrow,omitempty"`
	Notes        []string `json:"notes,omitempty"`
}

const (
	reordered = "the receiver took the senders' packets from different queues, so that their order is not that of the paths"
	silent    = "a sender was silent"
)

func noEstimate(because string) Result { return Result{Ratio: probe.NoEstimate(because)} }

func ratio(r float64) Result { return Result{Ratio: probe.Estimate{Value: r}} }

func inverse(e probe.Estimate) probe.Estimate {
	if !e.Known() {
		return e
	}
	return probe.Estimate{Value: 1 / e.Value, Low: 1 / e.High, High: 1 / e.Low}
}
