package traffic

import (
	"time"

	"headgate.dev/headgate/unit"
)

// Transfer is a file that is sent from From to To, over new connections each time. Its duration is
// from the first SYN until the last byte was read.
type Transfer struct {
	// Size in bytes of payload, of all streams together.
	Size unit.Bytes
	// Streams is the number of TCP connections, which carry equal parts; 0 is 1.
	Streams int `json:",omitempty"`
	// Times is how often the file is sent, one after the other; 0 is once.
	Times int `json:",omitempty"`
	// Pause between two transfers.
	Pause time.Duration `json:",omitempty"`
}

// maxStreams: with more, each gets a negligible part of a link.
const maxStreams = 1024

// Validate checks the numbers.
func (t Transfer) Validate() error {
	switch {
	case t.Streams < 0 || t.Streams > maxStreams:
		return mistake("streams", "%d streams are not between 1 and %d", t.Streams, maxStreams)
	case t.Size == 0 || t.Size < unit.Bytes(t.Streams):
		return mistake("size", "%v is less than one byte for each stream: write for example 100MB", t.Size)
	case t.Size > largest:
		return mistake("size", "%v is more than %v", t.Size, unit.Bytes(largest))
	case t.Times < 0:
		return mistake("times", "nothing is sent %d times: leave it out for once", t.Times)
	case t.Pause < 0:
		return mistake("pause", "%v is negative", t.Pause)
	}
	return nil
}

// parts returns the number of bytes of each stream.
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

// TransferResult is the result of a Transfer.
type TransferResult struct {
	// Completed are the completed transfers, in order.
	Completed []Completion `json:"completed"`
	// Failed is the number of transfers that failed, or were aborted at the flow's Stop.
	Failed uint64 `json:"failed"`
	// UnfinishedBytes arrived of a transfer in progress at the end of the run.
	UnfinishedBytes uint64 `json:"unfinished_bytes"`
	// Time summarises the completion times.
	Time Times `json:"time"`
}

// TransferProgress is the progress of a flow's transfers at the end of an interval.
type TransferProgress struct {
	// Completed and Failed are numbers of transfers so far.
	Completed uint64 `json:"completed"`
	Failed    uint64 `json:"failed"`
	// LastSeconds is the duration of the last completed transfer; 0 without one.
	LastSeconds float64 `json:"last_s"`
	// ArrivedBytes are of the transfer in progress; 0 between two.
	ArrivedBytes uint64 `json:"arrived_bytes"`
}

// Completion is one completed transfer.
type Completion struct {
	StartSeconds float64 `json:"start_s"`
	Seconds      float64 `json:"seconds"`
}
