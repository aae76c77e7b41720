package measure

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/session"
)

// serve starts a server on this host, and stops it at the end of the test.
func serve(t *testing.T, s *session.Server) Host {
	t.Helper()
	s.Log, s.Caps = slog.New(slog.DiscardHandler), session.Default
	if err := s.Listen(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	h, err := ParseHost(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A log has what the measurement estimated from.
func TestReplay(t *testing.T) {
	h := serve(t, &session.Server{})
	file := filepath.Join(t.TempDir(), "log")
	texts, directions := 0, 0
	j := Job{
		Directions: probe.Directions[:], Method: path.Method{Parts: path.Parts{Capacity: true}, Budget: 1_000_000}, Time: 10 * time.Second,
		Done: func(probe.Direction, []probe.Sample, *path.Answer) error { directions++; return nil },
	}
	got, err := Path(t.Context(), h, "capacity", j, Options{Log: file, OnProgress: func(string) { texts++ }})
	if err != nil || got.Host != h.Name || got.Control == 0 || len(got.Directions) != 2 || directions != 2 || texts < 2 {
		t.Fatalf("%v, %+v, %d texts", err, got, texts)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log, err := probe.ReadLog(f)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Replay(log, 0, false, nil)
	if err != nil || again.Report == nil {
		t.Fatalf("%v, %+v", err, again)
	}
	for _, d := range probe.Directions {
		a, b := *got.Directions[d], *again.Report.Directions[d]
		a.Seconds = 0 // a log has no duration
		if a.Capacity == nil || a.Bytes == 0 || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %+v, and from the log %+v", d, a, b)
		}
	}
}

// A log that cannot be created is an error.
func TestLogFails(t *testing.T) {
	h := serve(t, &session.Server{})
	o := Options{Log: filepath.Join(t.TempDir(), "no", "such", "folder")}
	if out, err := Watch(t.Context(), h, probe.Directions[:], limiter.Watch{Time: time.Second}, o); err == nil || out.Failed == "" {
		t.Errorf("watch: %v, %+v", err, out)
	}
	if out, err := Path(t.Context(), h, "path", Job{}, o); err == nil || out != nil {
		t.Errorf("path: %v, %+v", err, out)
	}
}

// A server measures for a client, within its caps.
func TestForClients(t *testing.T) {
	b := serve(t, &session.Server{})
	s := &session.Server{Peers: []probe.Address{b.Address}}
	s.Measure = ForClients(s)
	a := serve(t, s)
	for text, ok := range map[string]bool{`{"measure":"capacity","bytes":"500kB"}`: true, `{"measure":"flood"}`: false, `7`: false} {
		result, err := session.RequestMeasurement(t.Context(), session.Options{Host: a.Host, Port: a.Port}, b.Address, json.RawMessage(text), func(string) {})
		var out path.Report
		if ok {
			err = errors.Join(err, json.Unmarshal(result, &out))
		}
		if (err == nil) != ok || ok && (out.Peer == "" || len(out.Directions) != 2) {
			t.Errorf("%s: %v, %s", text, err, result)
		}
	}
}
