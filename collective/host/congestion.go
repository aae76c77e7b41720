package host

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/internal/wholefile"
	"headgate.dev/headgate/unit"
)

// congestionsDir has a file for each instance with the congestions of its sets.
const congestionsDir = "/var/lib/headgate/collective"

// Bounds of that file, chosen by Headgate.
const (
	// CongestionsKept is how long a congestion is kept.
	CongestionsKept = 7 * 24 * time.Hour
	// maxCongestions is the number that is kept, maxCongestionConnections the number of connections of each.
	maxCongestions, maxCongestionConnections = 2000, 64
)

func congestionsFile(instance string) string {
	return filepath.Join(congestionsDir, instance+".congestions.jsonl")
}

// Congestion is a time in which a set, or its part for a destination, was controlled, or would have been.
type Congestion struct {
	Set         string    `json:"set"`
	Destination string    `json:"destination,omitempty"`
	From        time.Time `json:"from"`
	To          time.Time `json:"to"`
	// DryRun is set if nothing was capped. Suspended is set if the set was suspended before the end of the congestion.
	DryRun    bool `json:"dry_run,omitempty"`
	Suspended bool `json:"suspended,omitempty"`
	// Connections are those that carried something, the ones that carried most first.
	Connections []CongestedConnection `json:"connections"`
}

// CongestedConnection is a connection in a congestion.
type CongestedConnection struct {
	// Service is the end of the service: the remote one of a connection that was opened, the local one of a connection that was accepted.
	Service string `json:"service"`
	// Learned is its learned rate. A configured Weight replaces it.
	Learned unit.Rate `json:"learned_rate"`
	Weight  float64   `json:"weight,omitempty"`
	// Carried is what it carried in the congestion.
	Carried     unit.Bytes `json:"carried"`
	Segments    uint32     `json:"segments"`
	Retransmits uint32     `json:"retransmits"`
	// Seconds is for how long it was a member, Waited for how long of that it had data to send that waited.
	Seconds float64 `json:"seconds"`
	Waited  float64 `json:"waited_s"`
}

// meant is what the proportion of a connection follows from.
func (c CongestedConnection) meant() float64 { return cmp.Or(c.Weight, float64(c.Learned)) }

// counted are the counts of a member when a congestion began, or when it came into it.
type counted struct {
	at                    time.Duration
	acked                 uint64
	segments, retransmits uint32
	waited                time.Duration
}

// count begins to count a member.
func (m *member) count(now time.Duration) {
	m.counted = counted{at: now, acked: m.Acked, segments: m.Segments, retransmits: m.Retransmits}
}

// congested returns what the member did in the congestion.
func (m *member) congested(now time.Duration) CongestedConnection {
	c := CongestedConnection{
		Service: m.Remote.String(), Weight: m.weight, Carried: unit.Bytes(m.Acked - m.counted.acked), Segments: m.Segments - m.counted.segments,
		Retransmits: m.Retransmits - m.counted.retransmits, Seconds: (now - m.counted.at).Seconds(), Waited: m.counted.waited.Seconds(),
	}
	if m.Passive {
		c.Service = m.Local.String()
	}
	c.Learned, _ = m.part.control.LearnedRate(m.ID)
	return c
}

// beginCongestion begins to count the members of a part.
func (p *part) beginCongestion(now time.Duration) {
	p.ended = nil
	for _, m := range p.members {
		m.count(now)
	}
}

// endCongestion keeps the congestion of a part that ends now.
func (s *set) endCongestion(p *part, now time.Duration) {
	c := Congestion{Set: s.policy.Name, To: time.Now().UTC().Truncate(time.Millisecond), Suspended: p.learns != nil && p.learns.Suspended().At > p.phase.since, Connections: p.ended}
	c.From = c.To.Add(-(now - p.phase.since))
	if p.to.IsValid() {
		c.Destination = p.to.String()
	}
	for _, m := range p.members {
		c.Connections = append(c.Connections, m.congested(now))
	}
	c.Connections = slices.DeleteFunc(c.Connections, func(one CongestedConnection) bool { return one.Carried == 0 })
	slices.SortFunc(c.Connections, func(a, b CongestedConnection) int {
		return cmp.Or(cmp.Compare(b.Carried, a.Carried), cmp.Compare(a.Service, b.Service))
	})
	c.Connections = c.Connections[:min(len(c.Connections), maxCongestionConnections)]
	p.ended = nil
	s.over = append(s.over, c)
}

// wait counts for how long members of a congestion have had data that waits.
func (p *part) wait(took time.Duration) {
	for _, m := range p.members {
		if m.Backlog >= m.Segment && m.Segment > 0 && !m.ReceiverFull {
			m.counted.waited += took
		}
	}
}

// congestionLog appends congestions to a file.
type congestionLog struct {
	mu   sync.Mutex
	file string
	last string // logged error
}

// add appends congestions.
func (l *congestionLog) add(all []Congestion) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range all {
		if err := appendCongestion(l.file, c); err == nil {
			l.last = ""
		} else if err.Error() != l.last {
			l.last = err.Error()
			slog.Warn("cannot keep a congestion for the report", "file", l.file, "error", err)
		}
	}
}

func appendCongestion(file string, c Congestion) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	// A process that was killed while it wrote has left a line without an end.
	if at, err := f.Seek(0, 2); err != nil {
		return err
	} else if last := make([]byte, 1); at > 0 {
		if _, err := f.ReadAt(last, at-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte("\n"), line...)
		}
	}
	_, err = f.Write(append(line, '\n'))
	return err
}

// trim removes what is too old or too much.
func (l *congestionLog) trim(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := readCongestions(l.file)
	if err != nil || len(all) == 0 {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(c Congestion) bool { return now.Sub(c.To) > CongestionsKept })
	kept = kept[max(len(kept)-maxCongestions, 0):]
	if len(kept) == len(all) {
		return nil
	}
	var text []byte
	for _, c := range kept {
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	return wholefile.Write(l.file, text, 0o600)
}

// Congestions returns those of an instance since a time, in order.
func Congestions(instance string, since time.Time) ([]Congestion, error) {
	all, err := readCongestions(congestionsFile(instance))
	if err != nil {
		return nil, fmt.Errorf("cannot read the congestions of instance %s: %w", instance, err)
	}
	return slices.DeleteFunc(all, func(c Congestion) bool { return c.To.Before(since) }), nil
}

// readCongestions reads a file; one that does not exist is empty, and an incomplete line of a killed process is left out.
func readCongestions(file string) (all []Congestion, err error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c Congestion
		if json.Unmarshal(lines.Bytes(), &c) == nil {
			all = append(all, c)
		}
	}
	return all, lines.Err()
}
