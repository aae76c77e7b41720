package mesh

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/session"
)

// Every pair is in one round, and no server is twice in a round.
func TestRounds(t *testing.T) {
	for n := 2; n <= 64; n++ {
		all := rounds(n)
		if want := n - 1 + n%2; len(all) != want {
			t.Errorf("%d servers: %d rounds, want %d", n, len(all), want)
		}
		seen := map[serverPair]bool{}
		for _, round := range all {
			busy := map[int]bool{}
			for _, p := range round {
				if p[0] >= p[1] || p[1] >= n || seen[p] || busy[p[0]] || busy[p[1]] {
					t.Fatalf("%d servers: pair %v in %v", n, p, round)
				}
				seen[p], busy[p[0]], busy[p[1]] = true, true, true
			}
		}
		if len(seen) != n*(n-1)/2 {
			t.Errorf("%d servers: %d pairs", n, len(seen))
		}
	}
}

// loadRows reads the lines that "headgate probe mesh -o json" prints: every kind of result.
func loadRows(t *testing.T) (out Rows) {
	f, err := os.Open("testdata/rows.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var r Row
		switch err := d.Decode(&r); err {
		case nil:
			out = append(out, r)
		case io.EOF:
			return out
		default:
			t.Fatal(err)
		}
	}
}

// Servers of this host measure each other. A server that does not run fails with all of its pairs.
func TestRun(t *testing.T) {
	list := config.Servers{Measure: "capacity", Bytes: 300_000, Servers: []config.Server{{Name: "a"}, {Name: "b"}, {Name: "absent", Address: probe.Address{Host: "127.0.0.1", Port: 1}}}}
	running := []*session.Server{{}, {}}
	for i, s := range running {
		s.Log, s.Caps, s.Measure = slog.New(slog.DiscardHandler), session.Default, measure.ForClients(s)
		if err := s.Listen(t.Context(), "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		list.Servers[i].Address = probe.Address{Host: "127.0.0.1", Port: int(s.Addr().Port())}
	}
	ctx, stop := context.WithCancel(context.Background())
	var servers sync.WaitGroup
	defer func() { stop(); servers.Wait() }()
	for _, s := range running {
		for _, other := range list.Servers {
			s.Peers = append(s.Peers, other.Address)
		}
		servers.Go(func() { s.Serve(ctx) })
	}
	seen := 0
	rows, err := Run(t.Context(), list, Options{OnRow: func(Row) { seen++ }, OnProgress: func(string) {}})
	if err != nil || len(rows) != 6 || seen != 6 || rows.Failed() != 4 {
		t.Errorf("%v, %d rows, %+v", err, seen, rows)
	}
	for _, r := range rows {
		if (r.Failed != "") != (r.From == "absent" || r.To == "absent") || r.Failed == "" && r.Capacity() == nil {
			t.Errorf("%+v", r)
		}
	}
}

func TestPrometheus(t *testing.T) {
	finished := time.Unix(1700000000, 500_000_000)
	rows := loadRows(t)
	var b bytes.Buffer
	if err := rows.WritePrometheus(&b, finished); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/mesh.prom"
	if golden.Update() {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || b.String() != string(want) {
		t.Errorf("%v; the text differs from %s:\n%s", err, file, b.String())
	}
	written := filepath.Join(t.TempDir(), "x.prom")
	for range 2 { // a new file, and an existing one
		if err := rows.WritePrometheusFile(written, finished); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(written)
		if info, bad := os.Stat(written); err != nil || bad != nil || !bytes.Equal(got, want) || info.Mode().Perm() != 0o644 {
			t.Errorf("%v, %v, %q", err, bad, got)
		}
	}
}
