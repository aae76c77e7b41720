package traffic

import "time"

// Result is the result of a run's flows.
type Result struct {
	// StartMonotonicNs is the start of the schedules, in the kernel's CLOCK_MONOTONIC, which is also
	// the clock of bpf_ktime_get_ns.
	StartMonotonicNs int64   `json:"start_monotonic_ns"`
	Seconds          float64 `json:"seconds"`
	// Seed is the seed of the run: Options.Seed, or a random one if that was 0.
	Seed  uint64       `json:"seed"`
	Flows []FlowResult `json:"flows"`
	// Stalls are the times for which the sender did not run for longer than StallBound: it offered
	// nothing, and discarded what exceeded the flows' backlog. The results of a run with long stalls
	// do not describe the path.
	Stalls []Stall `json:"stalls"`
}

// Stall is a time for which the sending program did not run.
type Stall struct {
	StartSeconds float64 `json:"start_s"`
	Seconds      float64 `json:"seconds"`
}

// StallBound is a fifth of DefaultBacklog: the sender catches up with shorter stalls within some ms. A
// virtual machine stalled for 995 ms once.
const StallBound = 20 * time.Millisecond

// FlowResult is the result of one flow.
type FlowResult struct {
	Name     string   `json:"name"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	Protocol Protocol `json:"protocol"`
	// FromAddr and ToAddr are the two ends, address and port.
	FromAddr string `json:"from_addr"`
	ToAddr   string `json:"to_addr"`
	// Congestion is the sender's congestion control, as the kernel reports it.
	Congestion string `json:"congestion,omitempty"`
	// FrameBytes is the layer-2 size of a full frame of this flow, PayloadBytes its payload: goodput
	// times their quotient is the layer-2 rate.
	FrameBytes   int `json:"frame_bytes"`
	PayloadBytes int `json:"payload_bytes"`
	// ECN and SACK are what both ends negotiated in the flow's first connection. Subflows is the
	// maximum number of subflows of a multipath connection; 0 is plain TCP.
	ECN      bool `json:"ecn"`
	SACK     bool `json:"sack"`
	Subflows int  `json:"subflows,omitempty"`
	// Seed is the seed of the flow's random numbers.
	Seed  uint64 `json:"seed"`
	Error string `json:"error,omitempty"`

	Intervals []Interval `json:"intervals"`
	// Total is the sum over the intervals; its SRTT, window and jitter are the last.
	Total Interval `json:"total"`
	// Requests and Transfer are the flow's results for the whole run.
	Requests *RequestStats   `json:"requests,omitempty"`
	Transfer *TransferResult `json:"transfer,omitempty"`
}

// Interval is a part of a run. Bytes are payload; bits are layer 2. For a flow with many connections,
// counts are sums over them; for Requests, over both directions.
type Interval struct {
	StartSeconds float64 `json:"start_s"`
	Seconds      float64 `json:"seconds"`
	// OfferedL2Bits is what the schedule offered. Parts at Unlimited, Requests and Transfers have no
	// schedule; for them it is what the sockets accepted.
	OfferedL2Bits float64 `json:"offered_l2_bits"`
	SentBytes     uint64  `json:"sent_bytes"` // accepted by the sender's socket
	// DeliveredBytes were read by the receiver; DeliveredL2Bits is the same in full frames.
	// Retransmissions are not included.
	DeliveredBytes  uint64  `json:"delivered_bytes"`
	DeliveredL2Bits float64 `json:"delivered_l2_bits"`
	// Retransmits is the number of retransmitted TCP segments.
	Retransmits uint64 `json:"retransmitted_segments"`
	// Duplicates is the number of TCP segments that arrived twice, as far as the receiver reports them
	// (RFC 2883): they were retransmitted without having been lost. MissingSegments is the number of
	// segments that were sent since the start, including retransmissions, and have not arrived at the
	// end of the interval: lost, or in flight. Both are for flows with one connection.
	Duplicates      uint64 `json:"duplicate_segments,omitempty"`
	MissingSegments uint32 `json:"missing_segments,omitempty"`
	// DeliveredCE is the number of TCP segments that were acknowledged with an ECN echo, or of
	// datagrams that arrived with CE.
	DeliveredCE uint64 `json:"delivered_ce_segments"`
	// Datagrams and LostDatagrams are for UDP: sent, and missing by sequence number before the last
	// one that arrived.
	Datagrams     uint64 `json:"sent_datagrams"`
	LostDatagrams uint64 `json:"lost_datagrams"`
	// JitterUs is the interarrival jitter of RFC 3550 (6.4.1) at the end of the interval, from the
	// kernel's receive timestamps. UDP only.
	JitterUs float64 `json:"jitter_us"`
	// SRTTus and CwndSegments are the sender's at the end of the interval. Over several connections
	// they are the mean RTT and the sum of the windows of the senders (for Requests, those that
	// respond).
	SRTTus       uint32 `json:"srtt_us"`
	CwndSegments uint32 `json:"cwnd_segments"`
	// Requests are those of the interval, Transfer is the progress at its end. Sums of intervals have
	// neither: see FlowResult.
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

// Flow returns the result of the flow of that name, or nil.
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
	// Intervals begin some ms late on a busy machine, but at most 1 ms early.
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
