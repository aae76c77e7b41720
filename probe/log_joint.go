package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// jointWire is a JointSample's form in JSON: From has a digit for each arrival, the
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

// RecordedJoint is a joint sample of a log, and who sent.
type RecordedJoint struct {
	Hosts  []string
	Sample JointSample
}

// AddJoint writes a sample of several senders.
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

func (w *jointWire) sample() (RecordedJoint, error) {
	out := RecordedJoint{Hosts: w.Hosts, Sample: JointSample{Joint: Joint{Purpose: w.Purpose, Trains: w.Trains, Start: w.Start}, Reordered: w.Reordered}}
	switch n := len(w.Trains); {
	case len(w.Hosts) != n || len(w.Sent) != n:
		return out, fmt.Errorf("there are %d trains, %d hosts and %d lists of times at which packets were sent", n, len(w.Hosts), len(w.Sent))
	case len(w.From) != len(w.Packet) || len(w.From) != len(w.At):
		return out, errors.New("from, packet and at are not equally long")
	case len(w.Start) > n:
		return out, errors.New("there are more starts than trains")
	}
	for i, t := range w.Trains {
		// A sender may have nothing to send.
		if err := t.Check(); err != nil && len(t.Parts) > 0 {
			return out, err
		}
		if len(w.Sent[i]) != t.Count() {
			return out, fmt.Errorf("%d packets of %s have a time at which they were sent, of %d", len(w.Sent[i]), w.Hosts[i], t.Count())
		}
		out.Sample.Sent = append(out.Sample.Sent, w.Sent[i])
	}
	for i, from := range w.From {
		if from < 0 || from >= len(w.Trains) || w.Packet[i] < 0 || w.Packet[i] >= int64(w.Trains[from].Count()) {
			return out, fmt.Errorf("arrival %d is of nobody's packet", i)
		}
		out.Sample.Arrived = append(out.Sample.Arrived, JointArrival{from, int(w.Packet[i]), w.At[i]})
	}
	return out, nil
}
