package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// jointWire is the JSON form of a JointSample. From has the sender of each arrival; the
// other lists are Deltas.
type jointWire struct {
	Purpose   string          `json:"purpose,omitempty"`
	Hosts     []string        `json:"hosts,omitempty"`
	Trains    []Train         `json:"trains"`
	Start     []time.Duration `json:"start,omitempty"`
	Sent      []Deltas        `json:"sent_by"`
	From      []int           `json:"from"`
	Packet    Deltas          `json:"packet"`
	At        Deltas          `json:"at"`
	Reordered bool            `json:"reordered,omitempty"`
}

// LoggedJoint is a joint sample of a log with its senders.
type LoggedJoint struct {
	Hosts  []string
	Sample JointSample
}

// AddJoint writes a joint sample with the names of its senders.
func (l *Log) AddJoint(hosts []string, s *JointSample) error {
	w := jointWire{Purpose: s.Purpose, Hosts: hosts, Trains: s.Trains, Start: s.Start, Reordered: s.Reordered}
	for _, at := range s.Sent {
		w.Sent = append(w.Sent, at)
	}
	for _, a := range s.Arrived {
		w.From, w.Packet, w.At = append(w.From, a.From), append(w.Packet, int64(a.Number)), append(w.At, a.At)
	}
	return json.NewEncoder(l.w).Encode(w)
}

func (w *jointWire) sample() (LoggedJoint, error) {
	out := LoggedJoint{Hosts: w.Hosts, Sample: JointSample{Joint: Joint{Purpose: w.Purpose, Trains: w.Trains, Start: w.Start}, Reordered: w.Reordered}}
	switch n := len(w.Trains); {
	case len(w.Hosts) != n || len(w.Sent) != n:
		return out, fmt.Errorf("%d trains, %d hosts and %d lists of send times: the counts must be equal", n, len(w.Hosts), len(w.Sent))
	case len(w.From) != len(w.Packet) || len(w.From) != len(w.At):
		return out, errors.New("from, packet and at differ in length")
	case len(w.Start) > n:
		return out, errors.New("more start times than trains")
	}
	for i, t := range w.Trains {
		// A sender may have an empty train.
		if err := t.Check(); err != nil && len(t.Parts) > 0 {
			return out, err
		}
		if len(w.Sent[i]) != t.Count() {
			return out, fmt.Errorf("%d send times of %s for %d packets", len(w.Sent[i]), w.Hosts[i], t.Count())
		}
		out.Sample.Sent = append(out.Sample.Sent, w.Sent[i])
	}
	for i, from := range w.From {
		if from < 0 || from >= len(w.Trains) || w.Packet[i] < 0 || w.Packet[i] >= int64(w.Trains[from].Count()) {
			return out, fmt.Errorf("arrival %d is invalid: no train has this packet", i)
		}
		out.Sample.Arrived = append(out.Sample.Arrived, JointArrival{from, int(w.Packet[i]), w.At[i]})
	}
	return out, nil
}
