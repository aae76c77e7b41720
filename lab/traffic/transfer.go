package traffic

import (
	"time"

	"headgate.dev/headgate/unit"
)

// Transfer is a file that is sent from From to To, over new connections each
// time. Its time counts from the first SYN until the last byte was read.
type Transfer struct {
	// Size in bytes of payload, of all streams together.
	Size unit.Bytes
	// Streams are TCP connections that carry an equal part each; 0 is 1.
	Streams int `json:",omitempty"`
	// Times is how often it is sent, one after the other; 0 is once.
	Times int `json:",omitempty"`
	// Pause between them.
	Pause time.Duration `json:",omitempty"`
}

// maxStreams: more have no part of a link to speak of.
const maxStreams = 1024

// Validate checks the numbers.
func (t Transfer) Validate() error {
	switch {
	case t.Streams < 0 || t.Streams > maxStreams:
		return mistake("streams", "%d streams are not between 1 and %d", t.Streams, maxStreams)
	case t.Size == 0 || t.Size < unit.Bytes(t.Streams):
		return mistake("size", "%v does not give each stream a byte: write for example 100MB", t.Size)
	case t.Size > largest:
		return mistake("size", "%v is more than %v", t.Size, unit.Bytes(largest))
	case t.Times < 0:
		return mistake("times", "nothing is sent %d times: leave it out for once", t.Times)
	case t.Pause < 0:
		return mistake("pause", "%v is negative", t.Pause)
	}
	return nil
}

// parts is how many bytes each stream carries.
func (t Transfer) parts() []int64 {
	n := int64(max(t.Streams, 1))
	parts := make([]int64, n)
	for i := range parts {
		parts[i] = int64(t.Size) / n
		if int64(i) < int64(t.Size)%n {
			parts[i]++
		}
	}
	return parts
}

// TransferResult is what became of a Transfer.
type TransferResult struct {
	// Completed are those that arrived, in order.
	Completed []Completion `json:"completed"`
	// Failed broke, or were broken off at the flow's Stop.
	Failed uint64 `json:"failed"`
	// UnfinishedBytes arrived of one that was under way at the end of the run.
	UnfinishedBytes uint64 `json:"unfinished_bytes"`
	// Time sums up the completion times.
	Time Times `json:"time"`
}

// TransferProgress is how far a flow's transfers are at the end of an interval.
type TransferProgress struct {
	// Completed and Failed are numbers of transfers so far.
	Completed uint64 `json:"completed"`
	Failed    uint64 `json:"failed"`
	// LastSeconds is how long the last took that was completed; 0 before there is one.
	LastSeconds float64 `json:"last_s"`
	// ArrivedBytes are of the one under way; 0 between two.
	ArrivedBytes uint64 `json:"arrived_bytes"`
}

// Completion is one transfer.
type Completion struct {
	StartSeconds float64 `json:"start_s"`
	Seconds      float64 `json:"seconds"`
}
