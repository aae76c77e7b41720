package compare

import (
	"headgate/probe"
	"headgate/unit"
)

// Result is how two paths' capacities relate.
type Result struct {
	// Ratio is the capacity of the second sender's path by that of the first's, of the
	// parts of the paths before they meet. Where a shaper's bucket is smaller than a block
	// it is one of token rates.
	Ratio probe.Estimate `json:"ratio"`
	// Roughly is all that can be said of it where others' traffic leaves no clear mode.
	Roughly *probe.Estimate `json:"roughly,omitempty"`
	// Block is how much each sender sends in one go.
	Block unit.Bytes `json:"block,omitempty"`
	// Long is the same of blocks that find a bucket empty, if that changes it.
	Long *probe.Estimate `json:"long,omitempty"`
	// SharedNarrow: what the paths share is no faster than the faster of them.
	SharedNarrow bool     `json:"shared_narrow,omitempty"`
	Notes        []string `json:"notes,omitempty"`
}

const (
	reordered = "the receiver took the senders' packets from different queues, so that their order is not the path's"
	silent    = "a sender was silent"
)

func cannot(because string) Result { return Result{Ratio: probe.CannotTell(because)} }

func ratio(r float64) Result { return Result{Ratio: probe.Estimate{Value: r}} }

func inverse(e probe.Estimate) probe.Estimate {
	if !e.Known() {
		return e
	}
	return probe.Estimate{Value: 1 / e.Value, Low: 1 / e.High, High: 1 / e.Low}
}
