package controllertest

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/internal/pki"
)

// Agent is an agent that enforces nothing. Its device eth0 has the groups a and b, of which a has traffic.
type Agent struct {
	*remote.Link
	// Changes has a value for each change of the desired state.
	Changes chan struct{}
	// Probed has the peers of measurements.
	Probed chan string
	// Stop ends the agent, as the end of the test does.
	Stop func()
}

// Connect runs the agent of an identity that remote.Join has stored. others change the agent before it connects.
func Connect(t testing.TB, dir string, others ...func(*Agent)) *Agent {
	t.Helper()
	intent, err := remote.OpenIntent(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := &Agent{Link: remote.NewLink(dir, "test", intent), Changes: make(chan struct{}, 100), Probed: make(chan string, 100)}
	a.Changed = func() { a.Changes <- struct{}{} }
	a.Facts = func() *agents.Facts {
		return &agents.Facts{Kernel: "6.18", Devices: []*agents.Device{{Name: "eth0", Up: true, Mtu: 1500, SpeedBps: 1e9, Owner: "controller", Altnames: []string{"enp0s3"}}}}
	}
	var bytes atomic.Uint64
	a.Report = func() *agents.Report {
		return &agents.Report{AtNs: time.Now().UnixNano(), Devices: []*agents.DeviceReport{{
			Dev: "eth0", Names: []string{"out/a", "out/b"}, GuaranteeBps: []uint64{40e6, 20e6},
			Bytes: []uint64{bytes.Add(1e6), 0}, BacklogBytes: []uint64{0, 0}, Drops: []uint64{0, 0}, Marks: []uint64{0, 0}, QueueDelayNs: []uint64{240_000, 7},
		}}}
	}
	a.Handlers = []remote.Handler{
		remote.Answer(func(_ context.Context, q *agents.UsageQuery, answer func(*agents.UsageAnswer)) error {
			answer(&agents.UsageAnswer{Id: q.Id, Rows: []*agents.Usage{{Dev: "eth0", Group: "out/a", Seconds: 60, DeliveredBytes: 7}, {Dev: "eth0", Group: "out/b", Seconds: 60}}})
			return nil
		}),
		remote.Answer(func(_ context.Context, q *agents.ProbeQuery, answer func(*agents.ProbeAnswer)) error {
			a.Probed <- q.Peer
			answer(&agents.ProbeAnswer{Id: q.Id, State: "done", Result: []byte(`{"peer": "` + q.Peer + `"}`)})
			return nil
		}),
		remote.Answer(func(_ context.Context, q *agents.SetsQuery, answer func(*agents.SetsAnswer)) error {
			answer(&agents.SetsAnswer{Id: q.Id, States: []byte(`[{"set": "db", "controlling": true, "connections": []}]`)})
			return nil
		}),
	}
	a.Handlers = append(a.Handlers, relayHandlers...)
	for _, other := range others {
		other(a)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	a.Stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(a.Stop)
	return a
}

// Wait waits for a change of the desired state.
func (a *Agent) Wait(t testing.TB) {
	t.Helper()
	select {
	case <-a.Changes:
	case <-time.After(10 * time.Second):
		t.Fatal("no change of the desired state within 10 s")
	}
}

// relayHandlers answer for a host with the relay agent east, which carries a connection and has carried another.
var relayHandlers = []remote.Handler{
	remote.Answer(func(_ context.Context, _ *agents.RelaysQuery, answer func(*agents.RelaysAnswer)) error {
		answer(&agents.RelaysAnswer{Error: "relay agent west: no answer", States: []byte(`[{"agent": "east", "at": "2026-05-04T10:00:00Z", "began": "2026-05-04T09:00:00Z", "exits": [
			{"address": "192.0.2.2:8424", "destinations": ["10.2.0.0/16"], "paths": [{"name": "fibre", "state": "open", "open_streams": 1, "suspect_streams": 0, "closed_streams": 0, "rtt_ns": 54000000,
				"send_rate_bps": 480000000, "receive_rate_bps": 0, "sent_bytes": 10, "received_bytes": 0, "streams": [
				{"number": 1, "state": "open", "rtt_ns": 54000000, "estimated_rate_bps": 500000000, "send_rate_bps": 480000000, "receive_rate_bps": 0, "unsent_bytes": 0, "unacknowledged_bytes": 0, "sent_bytes": 10, "received_bytes": 0}]}]}],
			"entries": [], "connections": [` + relayConnection("open") + `],
			"total": {"streams": 1, "connections": 7, "ended": 1, "failed": 0, "sent_bytes": 10, "received_bytes": 0, "send_rate_bps": 480000000, "receive_rate_bps": 0, "waiting_bytes": 0, "unread_bytes": 0, "reordering_bytes": 0},
			"omitted": {"connections": 6}}]`)})
		return nil
	}),
	remote.Answer(func(_ context.Context, q *agents.RelayEndedQuery, answer func(*agents.RelayEndedAnswer)) error {
		if q.Relay != "east" {
			return errors.New("relay agent " + q.Relay + " is not running on this host")
		}
		answer(&agents.RelayEndedAnswer{Connections: []byte("[" + relayConnection("ended") + "]")})
		return nil
	}),
}

func relayConnection(state string) string {
	return `{"client": "10.1.0.5:40000", "destination": "10.2.0.5:22", "exit": "192.0.2.2:8424", "state": "` + state + `", "began": "2026-05-04T09:30:00Z", "age_ns": 1800000000000, "sent_bytes": 10, "received_bytes": 0,
		"send_rate_bps": 480000000, "receive_rate_bps": 0, "waiting_bytes": 1, "unacknowledged_bytes": 2, "unread_bytes": 3, "reordering_bytes": 4, "paths": [{"path": "fibre", "sent_bytes": 10, "received_bytes": 0}]}`
}

// connection returns a connection of an identity to a controller; at "" is its own.
func connection(dir, at string) (remote.Identity, *grpc.ClientConn, error) {
	id, err := remote.ReadIdentity(dir)
	if err != nil {
		return id, nil, err
	}
	tls, err := pki.Client(&id.KeyPair, id.Authority)
	if err != nil {
		return id, nil, err
	}
	conn, err := grpc.NewClient(cmp.Or(at, id.Agents[0]), grpc.WithTransportCredentials(credentials.NewTLS(tls)))
	return id, conn, err
}

// Dial opens a stream of an identity to a controller, and returns the error with which the controller refuses it, "" for none.
func Dial(t testing.TB, dir, at string) string {
	t.Helper()
	_, conn, err := connection(dir, at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := agents.NewAgentsClient(conn).Connect(t.Context())
	if err == nil {
		_ = stream.Send(agents.From(&agents.Hello{}))
		_, err = stream.Recv()
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// Renew renews the certificate of an identity once, as an agent does, without storing it.
func Renew(ctx context.Context, dir string) error { return RenewAt(ctx, dir, "") }

// RenewAt is Renew at a controller; at "" is the identity's own.
func RenewAt(ctx context.Context, dir, at string) error {
	id, conn, err := connection(dir, at)
	if err != nil {
		return err
	}
	defer conn.Close()
	request, _, err := pki.Request(id.Host)
	if err != nil {
		return err
	}
	_, err = agents.NewAgentsClient(conn).Renew(ctx, &agents.RenewRequest{Request: request})
	return err
}
