package probe

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Deltas are numbers that JSON has as their differences, the first from 0: those of
// a train's stamps are short.
type Deltas []int64

// MarshalJSON writes the differences.
func (d Deltas) MarshalJSON() ([]byte, error) {
	out := make([]int64, len(d))
	for i, v := range d {
		out[i] = v
		if i > 0 {
			out[i] -= d[i-1]
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads them.
func (d *Deltas) UnmarshalJSON(b []byte) error {
	var in []int64
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	for i := 1; i < len(in); i++ {
		in[i] += in[i-1]
	}
	*d = in
	return nil
}

// wire is a sample's form in JSON.
type wire struct {
	Train
	Direction string   `json:"direction,omitempty"`
	Sent      Deltas   `json:"sent"`
	Packet    Deltas   `json:"packet"`
	At        Deltas   `json:"at"`
	Overflow  int      `json:"overflow,omitempty"`
	Stolen    Stolen   `json:"stolen,omitzero"`
	Flaws     []string `json:"flaws,omitempty"`
}

// MarshalJSON writes a sample: its train, and for each packet the times as Deltas.
func (s Sample) MarshalJSON() ([]byte, error) { return json.Marshal(s.wire("")) }

func (s *Sample) wire(direction string) wire {
	w := wire{Train: s.Train, Direction: direction, Sent: s.Sent, Overflow: s.Overflow, Stolen: s.Stolen, Flaws: s.Flaws}
	w.Packet, w.At = make(Deltas, len(s.Arrived)), make(Deltas, len(s.Arrived))
	for i, a := range s.Arrived {
		w.Packet[i], w.At[i] = int64(a.Number), a.At
	}
	return w
}

// UnmarshalJSON reads one, and refuses what cannot have come of its train.
func (s *Sample) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	var err error
	*s, err = w.sample()
	return err
}

// Most is how many packets a train has at most.
const Most = 4 << 20

func (w *wire) sample() (Sample, error) {
	if err := w.Train.Check(); err != nil {
		return Sample{}, err
	}
	count := w.Count()
	switch {
	case len(w.Sent) != count:
		return Sample{}, fmt.Errorf("%d packets have a time at which they were sent, of %d", len(w.Sent), count)
	case len(w.Packet) != len(w.At):
		return Sample{}, fmt.Errorf("%d packets arrived at %d times", len(w.Packet), len(w.At))
	}
	s := Sample{Train: w.Train, Sent: w.Sent, Overflow: w.Overflow, Stolen: w.Stolen, Flaws: w.Flaws}
	for i, n := range w.Packet {
		if n < 0 || n >= int64(count) {
			return Sample{}, fmt.Errorf("packet %d arrived, of %d", n, count)
		}
		s.Arrived = append(s.Arrived, Arrival{int(n), w.At[i]})
	}
	return s, nil
}

// Check tells what is wrong with a train that came from elsewhere.
func (t Train) Check() error {
	if len(t.Parts) == 0 {
		return errors.New("a train has at least one part")
	}
	count := 0
	for _, p := range t.Parts {
		switch {
		case p.Count < 1 || p.Count > Most:
			return fmt.Errorf("a part of %d packets: it has from 1 to %d", p.Count, Most)
		case p.Size < 1 || p.Size > 65_535:
			return fmt.Errorf("packets of %d bytes: they have from 1 to 65535", p.Size)
		case p.Pause < 0 || p.Pause > time.Hour:
			return fmt.Errorf("a pause of %v: it lasts from 0 to an hour", p.Pause)
		}
		if count += p.Count; count > Most {
			return fmt.Errorf("a train of more than %d packets", Most)
		}
	}
	return nil
}

// LogVersion is that of the log's format.
const LogVersion = 1

// LogHead is a log's first line.
type LogHead struct {
	Version int       `json:"headgate_probe_log"`
	Started time.Time `json:"started"`
	// Host that was measured to, and the words of the command.
	Host    string `json:"host,omitempty"`
	Command string `json:"command,omitempty"`
	// MTU of the path, and its RTT.
	MTU int           `json:"mtu,omitempty"`
	RTT time.Duration `json:"rtt,omitempty"`
}

// Direction of a sample: Out is from the client, which asks, to the server.
type Direction string

// The directions.
const (
	Out Direction = "out"
	In  Direction = "in"
)

// Directions are both, in the order in which they are measured and told.
var Directions = [...]Direction{Out, In}

// Log writes samples as they come, one JSON line each after the head.
type Log struct{ w io.Writer }

// NewLog writes the head.
func NewLog(w io.Writer, head LogHead) (*Log, error) {
	head.Version = LogVersion
	return &Log{w}, json.NewEncoder(w).Encode(head)
}

// Add writes a sample.
func (l *Log) Add(d Direction, s *Sample) error {
	return json.NewEncoder(l.w).Encode(s.wire(string(d)))
}

// Recorded is what a log holds.
type Recorded struct {
	Head    LogHead
	Samples map[Direction][]Sample
	Joint   []RecordedJoint
}

// ReadLog reads a log. A last line that is not whole, as a killed program leaves it,
// is left out; any other mistake names its line.
func ReadLog(r io.Reader) (*Recorded, error) {
	out := &Recorded{Samples: map[Direction][]Sample{}}
	in := bufio.NewReader(r)
	for line := 1; ; line++ {
		text, err := in.ReadBytes('\n')
		if err == io.EOF {
			if line == 1 {
				return nil, errors.New("this is no log of headgate probe: its first line is not whole")
			}
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if line == 1 {
			if json.Unmarshal(text, &out.Head) != nil || out.Head.Version == 0 {
				return nil, errors.New(`this is no log of headgate probe: its first line has no "headgate_probe_log"`)
			}
			if out.Head.Version != LogVersion {
				return nil, fmt.Errorf("the log has version %d: this headgate reads %d", out.Head.Version, LogVersion)
			}
			continue
		}
		if err := out.add(text); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// add takes one line over.
func (r *Recorded) add(text []byte) error {
	var w struct {
		wire
		Trains json.RawMessage `json:"trains"`
	}
	if err := json.Unmarshal(text, &w); err == nil && w.Trains == nil {
		d := Direction(w.Direction)
		if d != Out && d != In {
			return fmt.Errorf("direction %q: it is %q or %q", w.Direction, Out, In)
		}
		s, err := w.sample()
		r.Samples[d] = append(r.Samples[d], s)
		return err
	}
	var j jointWire
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	s, err := j.sample()
	r.Joint = append(r.Joint, s)
	return err
}
