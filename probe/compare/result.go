package compare

import "headgate/probe"

// Result is how two paths' capacities relate.
type Result struct {
	// Ratio is the capacity of the second sender's path by that of the first's, of the
	// parts of the paths before they meet.
	Ratio probe.Estimate `json:"ratio"`
}

const reordered = "the receiver took the senders' packets from different queues, so that their order is not the path's"

func cannot(because string) Result { return Result{Ratio: probe.CannotTell(because)} }

func ratio(r float64) Result { return Result{Ratio: probe.Estimate{Value: r}} }
