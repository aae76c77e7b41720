package probe

import (
	"time"

	"headgate.dev/headgate/unit"
)

// Joint is a set of trains that several senders send to one receiver at about the same
// time. PathComp (estimation seed, chapter 3) and PacketTick (chapter 5) evaluate the
// order in which the packets arrive.
type Joint struct {
	Purpose string `json:"purpose,omitempty"`
	// Trains has one train for each sender, in the order of the senders.
	Trains []Train `json:"trains"`
	// Start is the delay of each sender after the earliest possible start. It makes
	// trains meet at the receiver although the paths differ in length. nil starts all at
	// once.
	Start []time.Duration `json:"start,omitempty"`
}

// Bytes returns the layer 2 bytes of all trains.
func (j Joint) Bytes() (b unit.Bytes) {
	for _, t := range j.Trains {
		b += t.Bytes()
	}
	return b
}

// JointSample is the result of a Joint.
type JointSample struct {
	Joint
	// Sent has the send time of each packet of each train, in ns of the sender's clock.
	Sent [][]int64 `json:"sent"`
	// Arrived has the packets of all senders in the order of arrival.
	Arrived []JointArrival `json:"arrived"`
	// Reordered is set if packets of different senders came through different receive
	// queues. Their order is then not the order on the path (figure 3.22).
	Reordered bool `json:"reordered,omitempty"`
}

// JointArrival is one packet that arrived.
type JointArrival struct {
	// From is the sender's index in Trains, Number the packet's index in that train; both
	// count from 0.
	From   int `json:"from"`
	Number int `json:"n"`
	// At is the arrival time in ns of the receiver's clock.
	At int64 `json:"at"`
}

// Sender returns the part of one sender as a sample.
func (s *JointSample) Sender(from int) Sample {
	out := Sample{Train: s.Trains[from], Sent: s.Sent[from]}
	for _, a := range s.Arrived {
		if a.From == from {
			out.Arrived = append(out.Arrived, Arrival{Number: a.Number, At: a.At})
		}
	}
	return out
}
