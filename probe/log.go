package probe

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"headgate.dev/headgate/unit"
)

// Deltas are numbers that are encoded in JSON as differences, the first as it is. The
// differences of a train's timestamps are short.
type Deltas []int64

// MarshalJSON encodes the differences.
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

// UnmarshalJSON decodes the differences.
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

// wire is the JSON form of a sample.
type wire struct {
	Train
	Direction    string     `json:"direction,omitempty"`
	Sent         Deltas     `json:"sent"`
	Packet       Deltas     `json:"packet"`
	At           Deltas     `json:"at"`
	Again        unit.Bytes `json:"again,omitempty"`
	AgainArrived unit.Bytes `json:"again_arrived,omitempty"`
	Overflow     int        `json:"overflow,omitempty"`
	StealTime    StealTime  `json:"stolen,omitzero"`
	Flaws        []string   `json:"flaws,omitempty"`
}

// MarshalJSON encodes a sample: its train, and the times of the packets as Deltas.
func (s Sample) MarshalJSON() ([]byte, error) { return json.Marshal(s.wire("")) }

func (s *Sample) wire(direction string) wire {
	w := wire{Train: s.Train, Direction: direction, Sent: s.Sent, Again: s.Again, AgainArrived: s.AgainArrived, Overflow: s.Overflow, StealTime: s.StealTime, Flaws: s.Flaws}
	w.Packet, w.At = make(Deltas, len(s.Arrived)), make(Deltas, len(s.Arrived))
	for i, a := range s.Arrived {
		w.Packet[i], w.At[i] = int64(a.Number), a.At
	}
	return w
}

// UnmarshalJSON decodes a sample, and rejects one that its train cannot have produced.
func (s *Sample) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	var err error
	*s, err = w.sample()
	return err
}

// MaxPackets is the maximum number of packets of a train.
const MaxPackets = 4 << 20

func (w *wire) sample() (Sample, error) {
	if err := w.Train.Check(); err != nil {
		return Sample{}, err
	}
	count := w.Count()
	switch {
	case len(w.Sent) != count:
		return Sample{}, fmt.Errorf("%d send times for %d packets", len(w.Sent), count)
	case len(w.Packet) != len(w.At):
		return Sample{}, fmt.Errorf("%d packet numbers and %d arrival times", len(w.Packet), len(w.At))
	}
	s := Sample{Train: w.Train, Sent: w.Sent, Again: w.Again, AgainArrived: w.AgainArrived, Overflow: w.Overflow, StealTime: w.StealTime, Flaws: w.Flaws}
	for i, n := range w.Packet {
		if n < 0 || n >= int64(count) {
			return Sample{}, fmt.Errorf("arrival of packet %d is invalid: the train has %d packets", n, count)
		}
		s.Arrived = append(s.Arrived, Arrival{int(n), w.At[i]})
	}
	return s, nil
}

// Check validates a train that came from a file or from a peer.
func (t Train) Check() error {
	if len(t.Parts) == 0 {
		return errors.New("train is empty: it needs at least one part")
	}
	count := 0
	for _, p := range t.Parts {
		switch {
		case p.Count < 1 || p.Count > MaxPackets:
			return fmt.Errorf("part has %d packets: use 1 to %d", p.Count, MaxPackets)
		case p.Size < 1 || p.Size > 65_535:
			return fmt.Errorf("packet size of %d bytes is invalid: use 1 to 65535", p.Size)
		case p.Pause < 0 || p.Pause > time.Hour:
			return fmt.Errorf("pause of %v is invalid: use 0 to 1h", p.Pause)
		}
		if count += p.Count; count > MaxPackets {
			return fmt.Errorf("train is too long: the maximum is %d packets", MaxPackets)
		}
	}
	return nil
}

// LogVersion is the version of the log format.
const LogVersion = 1

// LogHeader is the first line of a log.
type LogHeader struct {
	Version int       `json:"headgate_probe_log"`
	Started time.Time `json:"started"`
	// Host is the peer of the measurement, Command the subcommand that ran.
	Host    string `json:"host,omitempty"`
	Command string `json:"command,omitempty"`
	// MTU and RTT are those of the path.
	MTU int           `json:"mtu,omitempty"`
	RTT time.Duration `json:"rtt,omitempty"`
}

// Direction is the direction of a sample. Out is from the client to the server.
type Direction string

// Directions of a path.
const (
	Out Direction = "out"
	In  Direction = "in"
)

// Directions has both directions, in the order in which they are measured and printed.
var Directions = [...]Direction{Out, In}

// Log writes samples as they arrive: after the head, one JSON line for each.
type Log struct{ w io.Writer }

// NewLog writes the head of a log.
func NewLog(w io.Writer, head LogHeader) (*Log, error) {
	head.Version = LogVersion
	return &Log{w}, json.NewEncoder(w).Encode(head)
}

// Add writes a sample.
func (l *Log) Add(d Direction, s *Sample) error {
	return json.NewEncoder(l.w).Encode(s.wire(string(d)))
}

// LogContents is the content of a log.
type LogContents struct {
	Head    LogHeader
	Samples map[Direction][]Sample
	Joint   []LoggedJoint
}

// ReadLog reads a log. An incomplete last line, which a killed program leaves, is
// ignored. Any other error names its line.
func ReadLog(r io.Reader) (*LogContents, error) {
	out := &LogContents{Samples: map[Direction][]Sample{}}
	in := bufio.NewReader(r)
	for line := 1; ; line++ {
		text, err := in.ReadBytes('\n')
		if err == io.EOF {
			if line == 1 {
				return nil, errors.New("not a headgate probe log: the first line is incomplete")
			}
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if line == 1 {
			if json.Unmarshal(text, &out.Head) != nil || out.Head.Version == 0 {
				return nil, errors.New(`not a headgate probe log: the first line has no "headgate_probe_log"`)
			}
			if out.Head.Version != LogVersion {
				return nil, fmt.Errorf("log version %d is not supported: this headgate reads version %d", out.Head.Version, LogVersion)
			}
			continue
		}
		if err := out.add(text); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// add decodes one line and appends it to r.
func (r *LogContents) add(text []byte) error {
	var w struct {
		wire
		Trains json.RawMessage `json:"trains"`
	}
	if err := json.Unmarshal(text, &w); err == nil && w.Trains == nil {
		d := Direction(w.Direction)
		if d != Out && d != In {
			return fmt.Errorf("direction %q is invalid: use %q or %q", w.Direction, Out, In)
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
