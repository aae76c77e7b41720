package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/session"
	"headgate.dev/headgate/unit"
)

// Request is a client's request to a server to measure to a peer. The server's own caps apply as well.
type Request struct {
	Measure  string        `json:"measure"`
	Capacity unit.Rate     `json:"capacity,omitempty"`
	Nominal  unit.Rate     `json:"nominal,omitempty"` // see path.Method
	Bytes    unit.Bytes    `json:"bytes,omitempty"`   // of each direction
	Time     time.Duration `json:"time,omitempty"`
}

// Job returns the job of a request, limited by a server's caps.
func (r Request) Job(caps session.Caps) (Job, error) {
	parts, ok := path.PartsOf(r.Measure)
	if !ok {
		return Job{}, fmt.Errorf("unknown measurement %q", r.Measure)
	}
	if r.Bytes == 0 {
		r.Bytes = path.Budget
	}
	// The budget is 90 % of the cap, because the MTU discovery sends some bytes. Each direction gets
	// half of the time that the server allows.
	if half := caps.Time / 2; r.Time <= 0 || r.Time > half {
		r.Time = half
	}
	return Job{
		Directions: probe.Directions[:],
		Method:     path.Method{Parts: parts, KnownCapacity: r.Capacity, Nominal: r.Nominal, Budget: min(r.Bytes, caps.Bytes/10*9)},
		Time:       r.Time,
	}, nil
}

// ForClients returns the function with which a server measures to a peer for its clients.
func ForClients(s *session.Server) func(context.Context, probe.Address, json.RawMessage, func(string)) (json.RawMessage, error) {
	return func(ctx context.Context, peer probe.Address, text json.RawMessage, onProgress func(string)) (json.RawMessage, error) {
		var r Request
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("cannot parse the request: %w", err)
		}
		j, err := r.Job(s.Caps)
		if err != nil {
			return nil, err
		}
		j.OnProgress = onProgress
		client, err := session.Dial(ctx, session.Options{Host: peer.Host, Port: peer.Port, Auth: s.Auth, QueueTimeout: session.PeerQueueTimeout, Caps: &s.Caps})
		if err != nil {
			return nil, err
		}
		defer client.Close()
		out, failure := j.Run(ctx, client, peer.String())
		result, err := json.Marshal(out)
		if err != nil {
			return nil, err
		}
		return result, failure
	}
}
