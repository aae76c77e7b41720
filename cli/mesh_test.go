package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/config"
	"headgate/probe"
	"headgate/probe/available"
	"headgate/probe/path"
	"headgate/probe/session"
	"headgate/probe/tokenrate"
	"headgate/unit"
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

// someMesh returns a mesh with every kind of result.
func someMesh() *meshRun {
	estimate := func(v float64) probe.Estimate { return probe.Estimate{Value: v, Low: v * 0.99, High: v * 1.01} }
	answer := func(rate probe.Estimate) *path.Answer {
		c := estimate(1e9)
		return &path.Answer{Capacity: &c, TokenRate: &tokenrate.Result{Rate: rate, Bucket: estimate(1e5)}, Lost: 0.01, Bytes: 1_000_000, Seconds: 0.5}
	}
	m := &meshRun{list: config.Servers{Servers: []config.Server{{Name: "fra"}, {Name: "ams"}, {Name: "lab"}}}}
	free := answer(estimate(1e8))
	free.Available = &available.Result{Available: estimate(5e7)}
	m.rows = []meshRow{
		{From: "fra", To: "ams", RTT: 10 * time.Millisecond, Answer: answer(estimate(2e8))},
		{From: "ams", To: "fra", RTT: 10 * time.Millisecond, Answer: answer(probe.NoEstimate("the train met no limit"))},
		{From: "fra", To: "lab", Failed: "reported by fra: peer not allowed"},
		{From: "ams", To: "lab", Answer: answer(probe.Estimate{Value: 1e8, AtLeast: true})},
		{From: "lab", To: "fra", Answer: free},
		{From: "lab", To: "ams", Answer: answer(estimate(1e8)), Failed: "reported by ams: connection lost"},
	}
	return m
}

func TestMeshOutput(t *testing.T) {
	m := someMesh()
	var b bytes.Buffer
	if err := m.table(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/mesh.table", b.String())
	b.Reset()
	if err := m.prometheus(&b, time.Unix(1700000000, 500_000_000)); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/mesh.prom", b.String())
}

// The file has the old or the new content, and no temporary file is left.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.prom")
	for _, text := range []string{"one", "two"} {
		if err := replaceFile(file, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			t.Fatal(err)
		}
		if readFile(file) != text {
			t.Errorf("the file has %q", readFile(file))
		}
	}
	failure := fmt.Errorf("no")
	if err := replaceFile(file, func(w io.Writer) error { io.WriteString(w, "half"); return failure }); err == nil || readFile(file) != "two" {
		t.Errorf("%v leaves %q", err, readFile(file))
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "*")); len(list) != 1 {
		t.Errorf("%v", list)
	}
	if list, _ := filepath.Glob(filepath.Join(dir, ".*")); len(list) != 0 {
		t.Errorf("%v", list)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Peers from flags and from a file are normalized.
func TestReadPeers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peers")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# peers\nAms.example.org\n\n[2001:db8::7]:5000 # lab\n")
	got, err := readPeers([]string{"192.0.2.1:4950"}, file)
	want := []probe.Address{{Host: "192.0.2.1", Port: 4950}, {Host: "ams.example.org", Port: 4950}, {Host: "2001:db8::7", Port: 5000}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	write("ams.example.org\na b\n")
	if _, err := readPeers(nil, file); err == nil || !strings.HasPrefix(err.Error(), file+":2: ") {
		t.Errorf("a mistake in a file: %v", err)
	}
	if _, err := readPeers([]string{":1"}, ""); err == nil || !strings.HasPrefix(err.Error(), "--peer: ") {
		t.Errorf("a mistake in a flag: %v", err)
	}
}

// The server's limits bound a client's request.
func TestBoundedRequest(t *testing.T) {
	caps := session.Caps{Bytes: 1_000_000, Rate: unit.Gbit, Time: 20 * time.Second}
	for _, c := range []struct {
		r     request
		bytes unit.Bytes
		limit time.Duration
	}{
		{request{Measure: "tokenrate"}, 900_000, 10 * time.Second},
		{request{Measure: "path", Bytes: 1 << 40, Time: time.Hour}, 900_000, 10 * time.Second},
		{request{Measure: "capacity", Bytes: 1000, Time: time.Second}, 1000, time.Second},
		{request{Measure: "path", Time: -1}, 900_000, 10 * time.Second},
	} {
		j, err := c.r.bounded(caps)
		if err != nil || j.method.Budget != c.bytes || j.limit != c.limit {
			t.Errorf("%+v gets %v and %v, %v", c.r, j.method.Budget, j.limit, err)
		}
	}
	if _, err := (request{Measure: "flood"}).bounded(caps); err == nil {
		t.Error("an unknown measurement is accepted")
	}
}

func TestMeshUsage(t *testing.T) {
	w := newWorld(t, "eth0")
	servers := w.write("servers.yaml", strings.ReplaceAll(meshExample, "\n  ", "\n")[2:])
	for _, c := range []struct {
		args string
		code int
		err  string
	}{
		{"probe mesh", exitUsage, "write -f FILE"},
		{"probe mesh -f /no/such", exitUsage, "cannot read file"},
		{"probe mesh -f " + w.config("eth0", "1Gbit"), exitUsage, "kind: Servers"},
		{"probe mesh -o yaml -f " + servers, exitUsage, "write table, json or prometheus"},
		{"probe serve --open --peer x", exitUsage, "open"},
		{"probe serve --peer :1", exitUsage, "--peer: "},
		{"check -f " + servers, exitOK, ""},
		{"apply -f " + servers, exitUsage, "kind: Interface"},
	} {
		if r := w.run(strings.Fields(c.args)...); r.code != c.code || !strings.Contains(r.err, c.err) {
			t.Errorf("headgate %s: exit %d, want %d with %q\n%s", c.args, r.code, c.code, c.err, r.err)
		}
	}
	if r := w.must("check", "-f", servers); !strings.Contains(r.out, "ams at [2001:db8::7]:5000") {
		t.Errorf("check prints\n%s", r.out)
	}
}
