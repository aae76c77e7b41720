package probe

import (
	"iter"
	"time"

	"headgate.dev/headgate/unit"
)

// Overhead is the number of bytes that layer 2 adds to an IP packet: the Ethernet header,
// which Linux counts for rate limits. The frame check sequence, the gap between frames
// and VLAN tags are not included.
const Overhead = 14

// Train is a sequence of packets that is sent without waiting for an answer, in one or
// more consecutive parts. A packet pair is a train of 2.
type Train struct {
	// Purpose is the method and its step that the train is for, such as "capacity/pairs".
	Purpose string `json:"purpose,omitempty"`
	Parts   []Part `json:"parts"`
	// Apart passes each packet to the kernel alone: on the path nothing segments several that are passed together.
	Apart bool `json:"apart,omitempty"`
	// Once sends the train once also if an end disturbs it: it shows what passed, and another one would use more of a bucket.
	Once bool `json:"-"`
}

// Part is a sequence of packets of one size, sent at one rate.
type Part struct {
	Count int `json:"count"`
	// Size is the size of the IP packet with its header, in bytes.
	Size int `json:"size"`
	// Rate is the layer 2 rate; 0 sends back to back.
	Rate unit.Rate `json:"rate,omitempty"`
	// Pause is the silence before the part, counted from the last packet of the previous
	// part. Before the first part of a train, Pause counts from the last arrival of the
	// previous train.
	Pause time.Duration `json:"pause,omitempty"`
}

// Frame returns the layer 2 size of a packet, in bytes.
func (p Part) Frame() int { return p.Size + Overhead }

// Gap returns the time between packets in ns; 0 means back to back.
func (p Part) Gap() float64 {
	if p.Rate == 0 {
		return 0
	}
	return float64(p.Frame()) * 8e9 / float64(p.Rate)
}

// Uniform returns a train of one part.
func Uniform(purpose string, count, size int, rate unit.Rate) Train {
	return Train{Purpose: purpose, Parts: []Part{{Count: count, Size: size, Rate: rate}}}
}

// Count returns the number of packets of all parts.
func (t Train) Count() (n int) {
	for _, p := range t.Parts {
		n += p.Count
	}
	return n
}

// PartOf returns the part index of each packet.
func (t Train) PartOf() []int {
	out := make([]int, 0, t.Count())
	for i, p := range t.Parts {
		for range p.Count {
			out = append(out, i)
		}
	}
	return out
}

// Bytes returns the layer 2 bytes of the train.
func (t Train) Bytes() (b unit.Bytes) {
	for _, p := range t.Parts {
		b += unit.Bytes(p.Count * p.Frame())
	}
	return b
}

// Sample is a train and its measured result.
type Sample struct {
	Train
	// Sent has the send time of each packet, in ns of the sender's clock.
	Sent []int64 `json:"sent"`
	// Arrived has the packets in the order of arrival. A lost packet is missing, a
	// duplicated packet is in the list twice.
	Arrived []Arrival `json:"arrived"`
	// Again is the layer 2 bytes of the same train that were sent before and are in no sample, because an end disturbed them.
	Again unit.Bytes `json:"again,omitempty"`
	// AgainArrived is how many bytes of Again arrived; 0 in a log that does not say it.
	AgainArrived unit.Bytes `json:"again_arrived,omitempty"`
	// Overflow is the number of packets that the receiver's socket dropped, not the path.
	Overflow int `json:"overflow,omitempty"`
	// StealTime is the time for which the hypervisor kept a processor from either end during
	// the train (steal time in /proc/stat).
	StealTime StealTime `json:"stolen,omitzero"`
	// Flaws describe what went wrong at either end, such as a sender that stalled or a
	// clock that was set.
	Flaws []string `json:"flaws,omitempty"`
}

// StealTime is the steal time at both ends, in ns.
type StealTime struct {
	Sender   int64 `json:"sender"`
	Receiver int64 `json:"receiver"`
}

// Arrival is one packet that arrived.
type Arrival struct {
	// Number is the packet's index in the train, from 0.
	Number int `json:"n"`
	// At is the arrival time in ns of the receiver's clock. Only its rate, not its value,
	// is comparable with the sender's clock.
	At int64 `json:"at"`
}

// Split returns one sample for each part.
func (s *Sample) Split() []Sample {
	out := make([]Sample, len(s.Parts))
	begin := make([]int, len(s.Parts))
	owner := s.PartOf()
	from := 0
	for i, p := range s.Parts {
		begin[i] = from
		from += p.Count
		out[i] = Sample{Train: Train{Purpose: s.Purpose, Parts: s.Parts[i : i+1]}, Sent: s.Sent[begin[i]:from]}
	}
	for _, a := range s.Arrived {
		if a.Number >= 0 && a.Number < len(owner) {
			i := owner[a.Number]
			out[i].Arrived = append(out[i].Arrived, Arrival{a.Number - begin[i], a.At})
		}
	}
	return out
}

// Lost returns the number of packets that never arrived.
func (s *Sample) Lost() int {
	n := s.Count()
	for range s.received() {
		n--
	}
	return n
}

// received returns the numbers of the packets that arrived, each once.
func (s *Sample) received() iter.Seq[int] {
	return func(yield func(int) bool) {
		seen := make([]bool, s.Count())
		for _, a := range s.Arrived {
			if a.Number >= 0 && a.Number < len(seen) && !seen[a.Number] {
				seen[a.Number] = true
				if !yield(a.Number) {
					return
				}
			}
		}
	}
}

// ArrivedBytes returns the layer 2 bytes that arrived.
func (s *Sample) ArrivedBytes() (b unit.Bytes) {
	owner := s.PartOf()
	for n := range s.received() {
		b += unit.Bytes(s.Parts[owner[n]].Frame())
	}
	return b
}

// UsedBefore returns the layer 2 bytes that passed a limiter in trains of Again, at most.
func (s *Sample) UsedBefore() unit.Bytes {
	if s.AgainArrived > 0 {
		return s.AgainArrived
	}
	return s.Again
}

// ArrivalRate returns the average arrival rate u_t of a train of one part (estimation
// seed, 2.4.3) in bit/s of layer 2: the bytes after the first packet, divided by the time
// between the first and the last packet. It is 0 for fewer than two arrivals.
func (s *Sample) ArrivalRate() float64 {
	n := len(s.Arrived)
	if n < 2 {
		return 0
	}
	return rate(n-1, s.Parts[0], s.Arrived[n-1].At-s.Arrived[0].At)
}

// TailRate returns the arrival rate of the second half of a train of one part, without the burst at the
// start.
func (s *Sample) TailRate() float64 {
	tail := *s
	tail.Arrived = s.Arrived[len(s.Arrived)/2:]
	return tail.ArrivalRate()
}

// TailSendingRate returns the rate at which the packets of TailRate were sent.
func (s *Sample) TailSendingRate() float64 {
	n := len(s.Arrived)
	if n < 2 || len(s.Sent) == 0 {
		return 0
	}
	from, to := s.Arrived[n/2].Number, s.Arrived[n-1].Number
	if from >= to {
		return 0
	}
	return rate(to-from, s.Parts[0], s.Sent[to]-s.Sent[from])
}

// SendingRate returns the average rate at which a train of one part was sent.
func (s *Sample) SendingRate() float64 {
	n := len(s.Sent)
	if n < 2 {
		return 0
	}
	return rate(n-1, s.Parts[0], s.Sent[n-1]-s.Sent[0])
}

func rate(packets int, p Part, took int64) float64 {
	if took <= 0 {
		return 0
	}
	return float64(packets*p.Frame()) * 8e9 / float64(took)
}

// Dispersions returns the time in ns between each two packets that were both sent and
// received one directly after the other (pair-wise dispersions, 2.4.3). A pair with a
// lost or reordered packet is left out.
func (s *Sample) Dispersions() []int64 {
	out := make([]int64, 0, max(len(s.Arrived)-1, 0))
	for i := 1; i < len(s.Arrived); i++ {
		if s.Arrived[i].Number == s.Arrived[i-1].Number+1 {
			out = append(out, s.Arrived[i].At-s.Arrived[i-1].At)
		}
	}
	return out
}
