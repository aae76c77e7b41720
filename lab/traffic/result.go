package traffic

import "time"

// Result is what became of a run's flows.
type Result struct {
	// StartMonotonicNs is when the schedules began, in the kernel's
	// CLOCK_MONOTONIC, which is also the clock of bpf_ktime_get_ns.
	StartMonotonicNs int64   `json:"start_monotonic_ns"`
	Seconds          float64 `json:"seconds"`
	// Seed is what the run's draws were made of: Options.Seed, or the one that was
	// drawn because that was 0.
	Seed  uint64       `json:"seed"`
	Flows []FlowResult `json:"flows"`
	// Stalls are the times at which the sender was not run for longer than
	// StallBound: nothing was offered then, and what is beyond the flows' backlog
	// was given up. A run with stalls that matter says little about the path.
	Stalls []Stall `json:"stalls"`
}

// Stall is a standstill of the sending program, by its fault or the machine's.
type Stall struct {
	StartSeconds float64 `json:"start_s"`
	Seconds      float64 `json:"seconds"`
}

// StallBound is a fifth of DefaultBacklog: shorter stalls are made up for within
// some ms. A virtual machine was seen to stand still for 995 ms.
const StallBound = 20 * time.Millisecond

// FlowResult is one flow's.
type FlowResult struct {
	Name     string   `json:"name"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	Protocol Protocol `json:"protocol"`
	// FromAddr and ToAddr are the two ends, address and port.
	FromAddr string `json:"from_addr"`
	ToAddr   string `json:"to_addr"`
	// Congestion is what the kernel says the sender uses.
	Congestion string `json:"congestion,omitempty"`
	// FrameBytes is the layer-2 size of a full frame of this flow, PayloadBytes what
	// it carries: goodput times their quotient is the layer-2 rate.
	FrameBytes   int `json:"frame_bytes"`
	PayloadBytes int `json:"payload_bytes"`
	// ECN and SACK are what both ends agreed on, in the flow's first connection.
	// Subflows is the most of them that a multipath connection was seen to have; 0 is
	// plain TCP.
	ECN      bool `json:"ecn"`
	SACK     bool `json:"sack"`
	Subflows int  `json:"subflows,omitempty"`
	// Seed is what the flow's draws were made of.
	Seed  uint64 `json:"seed"`
	Error string `json:"error,omitempty"`

	Intervals []Interval `json:"intervals"`
	// Total is the sum over the intervals; its SRTT, window and jitter are the last.
	Total Interval `json:"total"`
	// Requests and Transfer are what became of the flow's, in the whole run.
	Requests *RequestStats   `json:"requests,omitempty"`
	Transfer *TransferResult `json:"transfer,omitempty"`
}

// Interval is a part of a run. Bytes are payload; bits are layer 2. Of a flow with
// many connections, counts are sums over them; of Requests, over both directions.
type Interval struct {
	StartSeconds float64 `json:"start_s"`
	Seconds      float64 `json:"seconds"`
	// OfferedL2Bits is what the schedule said; parts at Unlimited, Requests and
	// Transfers, for which it says nothing, count as what the sockets took.
	OfferedL2Bits float64 `json:"offered_l2_bits"`
	SentBytes     uint64  `json:"sent_bytes"` // the sender's socket took them
	// DeliveredBytes were read by the receiver; DeliveredL2Bits is the same in full
	// frames. Retransmissions are not in it.
	DeliveredBytes  uint64  `json:"delivered_bytes"`
	DeliveredL2Bits float64 `json:"delivered_l2_bits"`
	// Retransmits are TCP segments sent again.
	Retransmits uint64 `json:"retransmitted_segments"`
	// Duplicates are TCP segments that arrived twice, as far as the receiver says so (RFC 2883): they were
	// sent again and had not been lost. MissingSegments is how many of all that were sent since the start,
	// again too, have not arrived by the interval's end: lost, or still on their way. Both are of flows with
	// one connection.
	Duplicates      uint64 `json:"duplicate_segments,omitempty"`
	MissingSegments uint32 `json:"missing_segments,omitempty"`
	// DeliveredCE are TCP segments that were acknowledged with an ECN echo, or
	// datagrams that arrived with CE.
	DeliveredCE uint64 `json:"delivered_ce_segments"`
	// Datagrams and LostDatagrams are UDP's: sent, and missing by sequence number
	// among those that a later one has overtaken.
	Datagrams     uint64 `json:"sent_datagrams"`
	LostDatagrams uint64 `json:"lost_datagrams"`
	// JitterUs is the interarrival jitter of RFC 3550 (6.4.1) at the interval's end,
	// between the kernel's receive timestamps. UDP only.
	JitterUs float64 `json:"jitter_us"`
	// SRTTus and CwndSegments are the sender's at the interval's end. Over several
	// connections they are the mean RTT and the sum of the windows of those that
	// send (of Requests, those that answer).
	SRTTus       uint32 `json:"srtt_us"`
	CwndSegments uint32 `json:"cwnd_segments"`
	// Requests are those of the interval, Transfer is how far transfers are at its
	// end. Sums of intervals have neither: see FlowResult.
	Requests *RequestStats     `json:"requests,omitempty"`
	Transfer *TransferProgress `json:"transfer,omitempty"`
}

// OfferedRate and DeliveredRate are layer-2 bits per second.
func (i Interval) OfferedRate() float64   { return perSecond(i.OfferedL2Bits, i.Seconds) }
func (i Interval) DeliveredRate() float64 { return perSecond(i.DeliveredL2Bits, i.Seconds) }

func perSecond(v, seconds float64) float64 {
	if seconds == 0 {
		return 0
	}
	return v / seconds
}

// Flow is the result of the flow of that name, or nil.
func (r *Result) Flow(name string) *FlowResult {
	for i := range r.Flows {
		if r.Flows[i].Name == name {
			return &r.Flows[i]
		}
	}
	return nil
}

// Between sums the intervals that begin in [from, to).
func (f *FlowResult) Between(from, to time.Duration) (sum Interval) {
	// Intervals begin some ms late on a busy machine, never early by more than 1.
	const slack = 2e-3
	for _, iv := range f.Intervals {
		if iv.StartSeconds >= from.Seconds()-slack && iv.StartSeconds < to.Seconds()-slack {
			sum.add(iv)
		}
	}
	return sum
}

func (i *Interval) add(o Interval) {
	if i.Seconds == 0 {
		i.StartSeconds = o.StartSeconds
	}
	i.Seconds += o.Seconds
	i.OfferedL2Bits += o.OfferedL2Bits
	i.SentBytes += o.SentBytes
	i.DeliveredBytes += o.DeliveredBytes
	i.DeliveredL2Bits += o.DeliveredL2Bits
	i.Retransmits += o.Retransmits
	i.Duplicates += o.Duplicates
	i.MissingSegments = o.MissingSegments
	i.DeliveredCE += o.DeliveredCE
	i.Datagrams += o.Datagrams
	i.LostDatagrams += o.LostDatagrams
	i.SRTTus, i.CwndSegments, i.JitterUs = o.SRTTus, o.CwndSegments, o.JitterUs
}
