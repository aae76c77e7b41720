package probe

import (
	"time"

	"headgate/unit"
)

// Joint is trains that several senders send to one receiver at about the same time,
// for methods that read the order in which they arrive: PathComp (estimation seed,
// chapter 3) and PacketTick (chapter 5).
type Joint struct {
	Purpose string `json:"purpose,omitempty"`
	// Trains are one a sender, in the senders' order.
	Trains []Train `json:"trains"`
	// Start is how long after the first possible moment each sender begins, so that
	// trains meet although their ways differ in length; nil is all at once.
	Start []time.Duration `json:"start,omitempty"`
}

// Bytes are all that is sent, in layer 2.
func (j Joint) Bytes() (b unit.Bytes) {
	for _, t := range j.Trains {
		b += t.Bytes()
	}
	return b
}

// JointSample is what came of a Joint.
type JointSample struct {
	Joint
	// Sent says when each packet of each train was, in ns of that sender's clock.
	Sent [][]int64 `json:"sent"`
	// Arrived is in the order of arrival, of all senders together.
	Arrived []JointArrival `json:"arrived"`
	// Reordered: packets of different senders came through different receive queues,
	// so that their order is not the path's (figure 3.22).
	Reordered bool `json:"reordered,omitempty"`
}

// JointArrival is one packet that came.
type JointArrival struct {
	// From is its sender's place in Trains, Number its place in that train, from 0.
	From   int `json:"from"`
	Number int `json:"n"`
	// At is when, in ns of the receiver's clock.
	At int64 `json:"at"`
}

// Of is one sender's part as a sample of its own.
func (s *JointSample) Of(from int) Sample {
	out := Sample{Train: s.Trains[from], Sent: s.Sent[from]}
	for _, a := range s.Arrived {
		if a.From == from {
			out.Arrived = append(out.Arrived, Arrival{Number: a.Number, At: a.At})
		}
	}
	return out
}
