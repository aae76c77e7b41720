package controller_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/controller"
	"headgate.dev/headgate/metrics"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

// field simulates hosts whose agents run scheduled measurements, and checks which of them overlap.
type field struct {
	t  *testing.T
	mu sync.Mutex
	in map[string]string // by host: its running measurement
	// keys are the keys of the measurement servers, by measurement.
	keys  map[string]string
	asked int
	held  chan struct{} // measurements block until it is closed
}

func newField(t *testing.T) *field {
	f := &field{t: t, in: map[string]string{}, keys: map[string]string{}, held: make(chan struct{})}
	close(f.held)
	return f
}

// begin marks a host as measuring, and fails the test if the host is in another measurement.
func (f *field) begin(host, id string) {
	if other := f.in[host]; other != "" && other != id {
		f.t.Errorf("%s is in the measurements %s and %s", host, other, id)
	}
	f.in[host] = id
}

// outdated marks the hosts of a measurement as free.
func (f *field) outdated(id string) {
	for host, of := range f.in {
		if of == id {
			delete(f.in, host)
		}
	}
}

// found is the result of each measurement: 100 Mbit/s out, 50 in.
const found = `{"rtt_ns": 1000000, "directions": {
	"out": {"token_rate": {"rate": {"value": 1e8, "low": 99.8e6, "high": 100.2e6}, "bucket": {"value": 50000}}, "packet": 1500, "layer_3": 0.99, "lost": 0, "bytes": "500kB", "seconds": 1},
	"in": {"token_rate": {"rate": {"value": 5e7, "low": 49.9e6, "high": 50.1e6}, "bucket": {"value": 50000}}, "packet": 1500, "layer_3": 0.99, "lost": 0, "bytes": "500kB", "seconds": 1}}}`

// connect creates a host, and runs its agent until the test ends or stop is called.
func (f *field) connect(s *service, host string) (stop func()) {
	f.t.Helper()
	s.must(200, "PUT", "/v1/hosts/"+host, `{}`)
	dir := f.t.TempDir()
	token := s.token(fmt.Sprintf(`{"name": "join", "role": "agent", "host": %q}`, host))
	if err := remote.Join(f.t.Context(), dir, remote.Controller{URL: s.url, Host: host, Token: token, Pin: s.pin}); err != nil {
		f.t.Fatal(err)
	}
	intent, err := remote.OpenIntent(dir)
	if err != nil {
		f.t.Fatal(err)
	}
	l := remote.NewLink(dir, "test", intent)
	l.Changed = func() {}
	l.Facts = func() *agents.Facts { return &agents.Facts{} }
	l.Report = func() *agents.Report { return nil }
	end := &agents.ProbeEnd{Devices: []string{"eth0"}}
	serve := func(_ context.Context, q *agents.ProbeServe, answer func(*agents.ProbeServing)) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(q.Key) == 0 {
			return nil
		}
		f.begin(host, q.Id)
		f.keys[q.Id] = hex.EncodeToString(q.Key)
		answer(&agents.ProbeServing{Id: q.Id, Port: 5000, End: end})
		return nil
	}
	probe := func(ctx context.Context, q *agents.ProbeQuery, answer func(*agents.ProbeAnswer)) error {
		f.mu.Lock()
		f.begin(host, q.Id)
		f.asked++
		held := f.held
		if key := f.keys[q.Id]; key != hex.EncodeToString(q.Key) || len(q.Key) < 32 || q.Peer != "127.0.0.1:5000" || q.Bytes != 1_000_000 {
			f.t.Errorf("%s is asked %v, and the server has the key %s", host, q, key)
		}
		f.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
		}
		time.Sleep(50 * time.Millisecond)
		f.mu.Lock()
		f.outdated(q.Id)
		f.mu.Unlock()
		answer(&agents.ProbeAnswer{Id: q.Id, State: "done", Result: []byte(found), SentBytes: 1_100_000, End: end})
		return nil
	}
	l.Handlers = []remote.Handler{remote.Answer(serve), remote.Answer(probe)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	f.t.Cleanup(stop)
	f.until("the agent of "+host+" is connected", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/hosts/"+host, "").text, `"connected":true`)
	})
	return stop
}

// until waits for a condition.
func (f *field) until(what string, so func() bool) {
	f.t.Helper()
	for end := time.Now().Add(20 * time.Second); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatal("not within 20 s: " + what)
		}
	}
}

// made returns the number of measurements that agents were asked for.
func (f *field) made() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// hold blocks measurements that begin from now on until release is called.
func (f *field) hold() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := make(chan struct{})
	f.held = held
	return func() { close(held) }
}

type results struct {
	Items []struct {
		From, To, Measure, Error string
		Answer                   *struct {
			TokenRate struct{ Rate struct{ Value float64 } } `json:"token_rate"`
			SentBytes int                                    `json:"sent_bytes"`
		}
	}
	Next string
}

func (s *service) results(query string) (r results) {
	s.t.Helper()
	s.must(200, "GET", "/v1/probes"+query, "").into(s.t, &r)
	return r
}

// proposedLimit is the proposal for one direction.
type proposedLimit struct {
	LimitBps  int `json:"limit_bps"`
	BeforeBps int `json:"before_bps"`
}

// measured returns the number of results with an answer.
func (r results) measured() (n int) {
	for _, one := range r.Items {
		if one.Answer != nil {
			n++
		}
	}
	return n
}

type probeState struct {
	Running []struct{ From, To string }
	Spent   []struct {
		Host      string
		UsedBytes int `json:"used_bytes"`
	}
	Quiet bool
}

func (s *service) probeState() (p probeState) {
	s.t.Helper()
	s.must(200, "GET", "/v1/probe-state", "").into(s.t, &p)
	return p
}

// Hosts measure each other as scheduled, each pair once and never two measurements at a host. The
// results of both directions are available, and limits are derived from them. A disconnected host does
// not delay the others for long.
func TestSchedule(t *testing.T) {
	t.Parallel()
	l, err := metrics.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := controller.Config{Name: "c1", API: "127.0.0.1:0", Agents: "127.0.0.1:0", Version: "test", Metrics: l}
	s, f := startOn(t, storetest.Open(t, storetest.Start(t)), config, func() {}), newField(t)
	for _, host := range []string{"h1", "h2", "h3"} {
		f.connect(s, host)
	}
	s.must(200, "PUT", "/v1/hosts/h4", `{}`)
	const path = "/v1/probe-schedule"
	s.must(404, "GET", path, "")
	s.must(404, "DELETE", path, "")
	for body, want := range map[string]string{
		`{"measures": [{"measure": "path", "every": "6h"}], "budget": "1MB"}`:                                                         "budget",
		`{"measures": [{"measure": "path", "every": "6h"}], "budget": "1GB", "hosts": [{"host": "h1"}, {"host": "h9"}]}`:              "host h9 does not exist",
		`{"measures": [{"measure": "path", "every": "6h"}], "budget": "1GB", "pairs": [["h1", "h1"]]}`:                                "both ends are h1",
		`{"measures": [{"measure": "path", "every": "6h"}], "budget": "1GB", "quiet": [{"from": "00:00", "to": "24:00"}]}`:            "quiet hours leave no",
		`{"measures": [{"measure": "path", "every": "6h"}], "budget": "1GB", "hosts": [{"host": "h1", "links": ["x"]}], "zone": "X"}`: "not a known time zone",
	} {
		if r := s.must(422, "PUT", path, body); !strings.Contains(r.text, want) {
			t.Errorf("%s: %s, want %q", body, r.text, want)
		}
	}
	s.must(400, "PUT", path, `{"measures": [{"measure": "path", "every": "soon"}], "budget": "1GB"}`)
	const body = `{"measures": [{"measure": "tokenrate", "every": "6h"}], "bytes": "1MB", "time": "5s", "budget": "100MB", "pairs": [["h1", "h2"], ["h4", "h3"], ["h1", "h3"], ["h2", "h3"]]}`
	s.must(200, "PUT", path+"?dry_run=true", body)
	s.must(404, "GET", path, "")
	s.must(412, "PUT", path, body, "If-Match", "*")
	tag := s.must(200, "PUT", path, body).tag
	if again := s.must(200, "GET", path, ""); again.tag != tag || !strings.Contains(again.text, `"zone":"UTC"`) {
		t.Errorf("the schedule is %+v", again)
	}
	f.until("all connected hosts are measured", func() bool {
		r := s.results("?newest=true")
		return r.measured() == 6 && len(r.Items) == 8
	})
	for _, r := range s.results("?newest=true").Items {
		if away := r.From == "h4" || r.To == "h4"; away != strings.Contains(r.Error, "the agent of h4 is not connected") {
			t.Errorf("%s to %s: %q", r.From, r.To, r.Error)
		}
	}
	for query, want := range map[string]float64{"?from=h1&to=h2": 1e8, "?from=h2&to=h1&measure=tokenrate": 5e7, "?from=h3&to=h1&since=2026-01-01T00:00:00Z": 5e7} {
		if r := s.results(query); len(r.Items) != 1 || r.Items[0].Answer == nil || r.Items[0].Answer.TokenRate.Rate.Value != want || r.Items[0].Answer.SentBytes != 500_000 {
			t.Errorf("%s: %+v", query, r)
		}
	}
	if r := s.results("?from=h1&to=h2&measure=path"); len(r.Items) != 0 {
		t.Errorf("the other measure has %+v", r)
	}
	first := s.results("?limit=4")
	rest := s.results("?limit=4&after=" + first.Next)
	if len(first.Items) != 4 || len(rest.Items) != 2 || rest.Next != "" || f.made() != 3 {
		t.Errorf("the pages have %d and %d results, of %d measurements", len(first.Items), len(rest.Items), f.made())
	}
	state := s.probeState()
	if text := fmt.Sprint(state.Spent); len(state.Running) != 0 || text != "[{h1 2200000} {h2 2200000} {h3 2200000}]" {
		t.Errorf("afterwards the state is %+v", state)
	}

	told, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer told.Body.Close()
	text, err := io.ReadAll(told.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`headgate_probe_token_rate_bits_per_second{from="h1",measure="tokenrate",to="h2"} 1e+08`, `headgate_probe_token_rate_bits_per_second{from="h2",measure="tokenrate",to="h1"} 5e+07`,
		`headgate_probe_success{from="h3",measure="tokenrate",to="h4"} 0`, `headgate_probe_budget_spent_bytes{host="h1"} 2.2e+06`, `headgate_probe_running 0`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("the metrics do not have %s:\n%s", want, text)
		}
	}

	// Proposed limits of a device without configuration and of one with.
	var proposed struct {
		Items []struct {
			Dev       string
			Out, In   proposedLimit
			Interface *struct{ Out, In *struct{ Limit string } }
			Etag      string
			Changes   []struct {
				Group     string
				BeforeBps int `json:"before_bps"`
				AfterBps  int `json:"after_bps"`
			}
			Problems []string
		}
	}
	s.must(200, "GET", "/v1/hosts/h1/proposals", "").into(t, &proposed)
	if p := proposed.Items; len(p) != 1 || p[0].Dev != "eth0" || p[0].Out.LimitBps != 98.8e6 || p[0].In.LimitBps != 49.4e6 || p[0].Interface == nil || p[0].Interface.Out.Limit != "98.8Mbit" || p[0].Etag != "" {
		t.Errorf("the proposals are %+v", p)
	}
	tag = s.must(200, "PUT", "/v1/hosts/h1/interfaces/eth0", `{"out": {"limit": "1Gbit", "groups": [{"name": "web", "guarantee": "40%"}, {"name": "rest", "default": true}]}}`).tag
	proposed.Items = nil
	s.must(200, "GET", "/v1/hosts/h1/proposals?dev=eth0&margin=10%25", "").into(t, &proposed)
	if p := proposed.Items; len(p) != 1 || p[0].Out.LimitBps != 89.82e6 || p[0].Out.BeforeBps != 1e9 || p[0].In.LimitBps != 0 || p[0].Interface.In != nil || p[0].Etag != tag ||
		fmt.Sprint(p[0].Changes) != "[{web 400000000 35928000}]" {
		t.Errorf("with a configuration the proposals are %+v", p)
	}
	s.must(422, "GET", "/v1/hosts/h1/proposals?margin=60%25", "")
	s.must(404, "GET", "/v1/hosts/h9/proposals", "")

	s.must(204, "DELETE", path, "", "If-Match", "*")
	if r := s.results(""); len(r.Items) != 6 {
		t.Errorf("after the schedule's deletion there are %d results", len(r.Items))
	}
}

// A measurement between hosts of two controllers continues after a change of the leader, and runs
// once. A measurement whose agent disconnects ends at once, and counts with its whole reservation.
func TestScheduleLeader(t *testing.T) {
	t.Parallel()
	s, f := start(t), newField(t)
	other := s.beside(t)
	stop := f.connect(s, "h1")
	f.connect(other, "h2")
	release := f.hold()
	s.must(200, "PUT", "/v1/probe-schedule", `{"measures": [{"measure": "tokenrate", "every": "6h"}, {"measure": "available", "every": "6h"}], "bytes": "1MB", "time": "5s", "budget": "100MB"}`)
	f.until("the first measurement runs", func() bool { return f.made() == 1 })
	leads := func() string {
		name, err := s.store.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	was := leads()
	var candidates []store.Doc
	f.until("the other controller is a candidate", func() (so bool) {
		var err error
		if candidates, _, err = s.store.All(t.Context(), store.Prefix(store.Service, "leader"), 0); err != nil {
			t.Fatal(err)
		}
		return len(candidates) == 2
	})
	first := slices.MinFunc(candidates, func(a, b store.Doc) int { return cmp.Compare(a.Revision, b.Revision) })
	if _, err := s.store.Do(t.Context(), first.Key, func(tx *store.Tx) error { tx.Delete(first.Key); return nil }); err != nil {
		t.Fatal(err)
	}
	f.until("the other controller is the leader", func() bool { is := leads(); return is != "" && is != was })
	time.Sleep(2 * time.Second) // time in which a leader without the state would start it again
	if state := s.probeState(); len(state.Running) != 1 || f.made() != 1 {
		t.Errorf("after the change of the leader %+v is running, and %d were asked for", state, f.made())
	}
	again := f.hold()
	release()
	f.until("the second measurement runs", func() bool { return f.made() == 2 })
	if r := s.results(""); r.measured() != 2 {
		t.Errorf("the first measurement has %+v", r)
	}
	stop()
	f.until("the second measurement has ended", func() bool { return len(s.probeState().Running) == 0 })
	again()
	if r := s.results("?newest=true&measure=available"); len(r.Items) != 2 || r.measured() != 0 || !strings.Contains(r.Items[0].Error, "disconnected") {
		t.Errorf("the second measurement has %+v", r)
	}
	if text := fmt.Sprint(s.probeState().Spent); text != "[{h1 3350000} {h2 3350000}]" {
		t.Errorf("the bytes used are %s", text)
	}
}
