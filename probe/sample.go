package probe

import (
	"time"

	"headgate/unit"
)

// Overhead is what layer 2 adds to an IP packet, in bytes: an Ethernet header, which
// is what Linux counts where it limits rates. Neither the frame check sequence nor
// the gap between frames is in it, nor a VLAN tag.
const Overhead = 14

// Train is what is sent without waiting for an answer: packets in one or more parts
// that follow each other. A pair is a train of 2.
type Train struct {
	// Purpose says which step of which method it is for, such as "capacity/pairs".
	Purpose string `json:"purpose,omitempty"`
	Parts   []Part `json:"parts"`
}

// Part is packets of one size that are sent at one rate.
type Part struct {
	Count int `json:"count"`
	// Size is that of the IP packet, its header included, in bytes.
	Size int `json:"size"`
	// Rate is that of layer 2; 0 is back to back.
	Rate unit.Rate `json:"rate,omitempty"`
	// Pause is the silence before it, from the last packet of the part before; before
	// a train's first part, from the last arrival of the train before.
	Pause time.Duration `json:"pause,omitempty"`
}

// Frame is the size of one of its packets in layer 2, in bytes.
func (p Part) Frame() int { return p.Size + Overhead }

// Gap is the time from one packet to the next, in ns; 0 is back to back.
func (p Part) Gap() float64 {
	if p.Rate == 0 {
		return 0
	}
	return float64(p.Frame()) * 8e9 / float64(p.Rate)
}

// Uniform is a train of one part.
func Uniform(purpose string, count, size int, rate unit.Rate) Train {
	return Train{Purpose: purpose, Parts: []Part{{Count: count, Size: size, Rate: rate}}}
}

// Count is that of all parts' packets.
func (t Train) Count() (n int) {
	for _, p := range t.Parts {
		n += p.Count
	}
	return n
}

// PartOf says of each packet in which part it is.
func (t Train) PartOf() []int {
	out := make([]int, 0, t.Count())
	for i, p := range t.Parts {
		for range p.Count {
			out = append(out, i)
		}
	}
	return out
}

// Bytes are all that is sent, in layer 2.
func (t Train) Bytes() (b unit.Bytes) {
	for _, p := range t.Parts {
		b += unit.Bytes(p.Count * p.Frame())
	}
	return b
}

// Sample is a train, and what came of it.
type Sample struct {
	Train
	// Sent says when each packet was, in ns of the sender's clock.
	Sent []int64 `json:"sent"`
	// Arrived is in the order of arrival. A packet that is not in it was lost; one
	// that is in it twice was duplicated.
	Arrived []Arrival `json:"arrived"`
	// Overflow is how many packets the receiver's own socket dropped: not the path.
	Overflow int `json:"overflow,omitempty"`
	// Stolen is for how long the hypervisor kept a processor from either end while the
	// train was under way (/proc/stat).
	Stolen Stolen `json:"stolen,omitzero"`
	// Flaws are what went wrong at either end, in words: a sender that stood still, a
	// clock that was set.
	Flaws []string `json:"flaws,omitempty"`
}

// Stolen is time that the hypervisor gave to others, in ns.
type Stolen struct {
	Sender   int64 `json:"sender"`
	Receiver int64 `json:"receiver"`
}

// Arrival is one packet that came.
type Arrival struct {
	// Number is its place in the train, from 0.
	Number int `json:"n"`
	// At is when, in ns of the receiver's clock. It has nothing to do with the
	// sender's but its pace.
	At int64 `json:"at"`
}

// Split is what came of each part, as samples of one part.
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

// Lost is how many packets never came.
func (s *Sample) Lost() int {
	n := s.Count()
	seen := make([]bool, n)
	for _, a := range s.Arrived {
		if a.Number >= 0 && a.Number < len(seen) && !seen[a.Number] {
			seen[a.Number] = true
			n--
		}
	}
	return n
}

// ArrivalRate is the average arrival rate u_t of a train of one part (estimation
// seed, 2.4.3): the bytes after the first packet by the time between the first and
// the last, in bit/s of layer 2. It is 0 for fewer than two arrivals.
func (s *Sample) ArrivalRate() float64 {
	n := len(s.Arrived)
	if n < 2 {
		return 0
	}
	return rate(n-1, s.Parts[0], s.Arrived[n-1].At-s.Arrived[0].At)
}

// SendingRate is the same at the sender: what a train of one part was sent at.
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

// Dispersions are the times between packets that arrived one after the other and
// were sent one after the other, in ns (pair-wise dispersions, 2.4.3). A loss or a
// packet out of order leaves out the pairs it is in.
func (s *Sample) Dispersions() []int64 {
	out := make([]int64, 0, max(len(s.Arrived)-1, 0))
	for i := 1; i < len(s.Arrived); i++ {
		if s.Arrived[i].Number == s.Arrived[i-1].Number+1 {
			out = append(out, s.Arrived[i].At-s.Arrived[i-1].At)
		}
	}
	return out
}
