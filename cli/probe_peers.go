package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"headgate/probe"
	"headgate/probe/path"
	"headgate/probe/session"
	"headgate/unit"
)

// readPeers are those that flags name, and those of a file: one a line, with empty
// lines and comments (#).
func readPeers(named []string, file string) (out []probe.Address, err error) {
	for _, s := range named {
		peer, err := probe.ParseAddress(s)
		if err != nil {
			return nil, fmt.Errorf("--peer: %w", err)
		}
		out = append(out, peer)
	}
	if file == "" {
		return out, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		peer, err := probe.ParseAddress(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		out = append(out, peer)
	}
	return out, nil
}

// request is what a mesh asks a server to measure to a peer. The server's own bounds
// hold beside it.
type request struct {
	Measure  string        `json:"measure"`
	Capacity unit.Rate     `json:"capacity,omitempty"`
	Bytes    unit.Bytes    `json:"bytes,omitempty"` // of each direction
	Time     time.Duration `json:"time,omitempty"`
}

// bounded is the job that a request describes, within a server's caps.
func (r request) bounded(caps session.Caps) (job, error) {
	at := slices.IndexFunc(measurements, func(m measurement) bool { return m.name == r.Measure })
	if at < 0 {
		return job{}, fmt.Errorf("%q is no measurement that this server knows", r.Measure)
	}
	if r.Bytes == 0 {
		r.Bytes = path.Budget
	}
	// Some bytes find the MTU. Both directions together take no longer than the server allows.
	if half := caps.Time / 2; r.Time <= 0 || r.Time > half {
		r.Time = half
	}
	return job{
		directions: probe.Directions[:],
		method:     path.Method{Wanted: measurements[at].wanted, Known: r.Capacity, Budget: min(r.Bytes, caps.Bytes/10*9)},
		limit:      r.Time,
	}, nil
}

// measureFor is how a server measures to a peer for a client.
func measureFor(s *session.Server) func(context.Context, probe.Address, json.RawMessage, func(string)) (json.RawMessage, error) {
	return func(ctx context.Context, peer probe.Address, text json.RawMessage, say func(string)) (json.RawMessage, error) {
		var r request
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("the request cannot be read: %w", err)
		}
		j, err := r.bounded(s.Caps)
		if err != nil {
			return nil, err
		}
		j.say = func(format string, args ...any) { say(fmt.Sprintf(format, args...)) }
		client, err := session.Dial(ctx, session.Options{Host: peer.Host, Port: peer.Port, Auth: s.Auth, Patience: session.TurnPatience, Caps: &s.Caps})
		if err != nil {
			return nil, err
		}
		defer client.Close()
		j.send = client.Send
		out, failure := j.run(ctx, client, peer.String())
		result, err := json.Marshal(out)
		if err != nil {
			return nil, err
		}
		return result, failure
	}
}
