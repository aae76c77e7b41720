package clients

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/api/client"
	"headgate.dev/headgate/controller/controllertest"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

// The host whose agent is connected, and one with which it was measured.
const connected, measured = "web1", "web2"

// service is a controller with the agent of one host.
type service struct {
	*controllertest.Service
	client    *client.Client
	authority string // the file with the certificate of its authority
}

// start runs a controller on a store of its own. The connected host reports every kind of state, so that no
// response is empty.
func start(t *testing.T) *service {
	t.Helper()
	s := control(t)
	for _, host := range []string{connected, measured} {
		must[client.HostState](t)(s.client.PutHost(t.Context(), host, nil, client.Host{}))
	}
	s.connect(t)
	s.measure(t)
	s.connectSwitches(t)
	return s
}

// control runs a controller on a store of its own, which has no hosts.
func control(t *testing.T) *service {
	t.Helper()
	config := controllertest.Config()
	config.OpenFlow = "127.0.0.1:0"
	of := storetest.Open(t, storetest.Start(t))
	if err := of.Restored(t.Context(), "a backup without tokens and hosts", false); err != nil { // so that there is a restore to confirm
		t.Fatal(err)
	}
	s := &service{Service: controllertest.Run(t, of, config, nil)}
	var err error
	s.client, err = client.NewClient(s.URL, client.WithHTTPClient(s.Client), client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+s.Operator)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.authority = filepath.Join(t.TempDir(), "ca.pem")
	response, err := s.client.GetSession(t.Context())
	must[client.Principal](t)(response, err)
	for _, cert := range response.TLS.PeerCertificates {
		if pki.Hash(cert) == s.Pin {
			write(t, s.authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
		}
	}
	return s
}

// must returns a function that decodes a response, and fails the test for an error.
func must[T any](t testing.TB) func(*http.Response, error) T {
	return func(r *http.Response, err error) T {
		t.Helper()
		out, err := client.Decode[T](r, err)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

func write(t testing.TB, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// connect runs the agent of the connected host.
func (s *service) connect(t *testing.T) {
	t.Helper()
	dir, host := t.TempDir(), connected
	token := must[client.NewToken](t)(s.client.CreateToken(t.Context(), nil, client.TokenRequest{Name: "join", Role: client.RoleAgent, Host: &host}))
	if err := remote.Join(t.Context(), dir, remote.Controller{URL: s.URL, Host: host, Token: token.Token, Pin: s.Pin}); err != nil {
		t.Fatal(err)
	}
	controllertest.Connect(t, dir, func(a *controllertest.Agent) {
		facts := a.Facts()
		facts.Features = []*agents.Feature{{Name: "fq_codel", State: "missing", Found: "the module is not loaded"}}
		facts.Devices[0].Foreign = []string{"qdisc fq_codel"}
		a.Facts = func() *agents.Facts { return facts }
		var bytes atomic.Uint64
		a.Report = func() *agents.Report {
			return &agents.Report{AtNs: time.Now().UnixNano(), Devices: []*agents.DeviceReport{{
				Dev: "eth0", Names: []string{"out/shop"}, GuaranteeBps: []uint64{40e6}, Bytes: []uint64{bytes.Add(1e6)},
				BacklogBytes: []uint64{1500}, Drops: []uint64{1}, Marks: []uint64{2}, QueueDelayNs: []uint64{240_000},
			}}}
		}
		a.Handlers = append([]remote.Handler{ // the first one of a query answers it
			remote.Answer(func(_ context.Context, q *agents.UsageQuery, answer func(*agents.UsageAnswer)) error {
				answer(&agents.UsageAnswer{Id: q.Id, Rows: []*agents.Usage{{Dev: "eth0", Group: "out/shop", Seconds: 60, DeliveredBytes: 7}}})
				return nil
			}),
			remote.Answer(func(_ context.Context, q *agents.SetsQuery, answer func(*agents.SetsAnswer)) error {
				answer(&agents.SetsAnswer{Id: q.Id, States: []byte(`[{"set": "database", "at_ns": 2, "since_ns": 1, "controlling": true, "retransmitted": 0.01,
					"connections": [{"id": 1, "local": "10.0.0.1:55000", "remote": "10.0.0.2:5432", "learned_rate": "1Mbit", "rate": "2Mbit", "rtt_ns": 1000000, "window_cap": "30kB"}]}]`)})
				return nil
			}),
		}, a.Handlers...)
	})
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if is := must[client.HostState](t)(s.client.GetHost(t.Context(), host)); is.Devices != nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the agent is not connected within 10 s")
		}
	}
}

// measure stores the result of a measurement from the connected host.
func (s *service) measure(t *testing.T) {
	t.Helper()
	task, now := schedule.Task{From: connected, To: measured, Measure: "tokenrate"}, time.Now()
	result := store.ProbeResult{
		ID: "0123456789abcdef", Task: task, By: connected, At: now, RTT: time.Millisecond, Attempted: now, FromDevices: []string{"eth0"}, ToDevices: []string{"eth0"},
		Answer: json.RawMessage(`{"token_rate": {"rate": {"value": 1e8, "low": 99.8e6, "high": 100.2e6}, "bucket": {"value": 50000}}, "packet": 1500, "layer_3": 0.99, "lost": 0, "bytes": "500kB", "seconds": 1}`),
	}
	if _, err := s.Store.Do(t.Context(), store.NewestKey(task), func(tx *store.Tx) error {
		if err := tx.Put(store.NewestKey(task), result); err != nil {
			return err
		}
		return tx.Put(store.ProbeKey(task, now), result)
	}); err != nil {
		t.Fatal(err)
	}
}

// environment returns the variables of a program that calls every operation.
func (s *service) environment(t *testing.T) []string {
	t.Helper()
	request, _, err := pki.Request("new")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "request.pem")
	write(t, file, request)
	return []string{
		"HEADGATE_URL=" + s.URL, "HEADGATE_TOKEN=" + s.Operator, "HEADGATE_HOST=" + connected, "HEADGATE_REQUEST=" + file,
		"HEADGATE_CA=" + s.authority, "NODE_EXTRA_CA_CERTS=" + s.authority,
	}
}
