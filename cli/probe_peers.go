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

// readPeers returns the peers of flags and of a file. The file has one peer per line, and may
// have empty lines and comments (#).
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

// request is a mesh's request to a server to measure to a peer. The server's own limits apply
// as well.
type request struct {
	Measure  string        `json:"measure"`
	Capacity unit.Rate     `json:"capacity,omitempty"`
	Bytes    unit.Bytes    `json:"bytes,omitempty"` // of each direction
	Time     time.Duration `json:"time,omitempty"`
}

// bounded returns the job of a request, limited by a server's caps.
func (r request) bounded(caps session.Caps) (measurementJob, error) {
	at := slices.IndexFunc(measurements, func(m measurement) bool { return m.name == r.Measure })
	if at < 0 {
		return measurementJob{}, fmt.Errorf("unknown measurement %q", r.Measure)
	}
	if r.Bytes == 0 {
		r.Bytes = path.Budget
	}
	// The budget is 90 % of the cap, because the MTU discovery sends some bytes. Each direction gets
	// half of the time that the server allows.
	if half := caps.Time / 2; r.Time <= 0 || r.Time > half {
		r.Time = half
	}
	return measurementJob{
		directions: probe.Directions[:],
		method:     path.Method{Parts: measurements[at].estimates, KnownCapacity: r.Capacity, Budget: min(r.Bytes, caps.Bytes/10*9)},
		limit:      r.Time,
	}, nil
}

// measureFor returns the function with which a server measures to a peer for a client.
func measureFor(s *session.Server) func(context.Context, probe.Address, json.RawMessage, func(string)) (json.RawMessage, error) {
	return func(ctx context.Context, peer probe.Address, text json.RawMessage, say func(string)) (json.RawMessage, error) {
		var r request
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("cannot parse the request: %w", err)
		}
		j, err := r.bounded(s.Caps)
		if err != nil {
			return nil, err
		}
		j.say = func(format string, args ...any) { say(fmt.Sprintf(format, args...)) }
		client, err := session.Dial(ctx, session.Options{Host: peer.Host, Port: peer.Port, Auth: s.Auth, QueueTimeout: session.PeerQueueTimeout, Caps: &s.Caps})
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
