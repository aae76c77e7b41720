package controllertest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
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
