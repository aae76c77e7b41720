package lab_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// wan returns a topology with the given link in the middle:
//
//	client ── router ──wan── server
func wan(l lab.LinkSpec) *lab.Topology {
	l.Name, l.Ends = "wan", [2]string{"router", "server"}
	return &lab.Topology{
		Name:  lab.UniqueName("run"),
		Nodes: []lab.NodeSpec{{Name: "client"}, {Name: "router", Router: true}, {Name: "server"}},
		Links: []lab.LinkSpec{{Ends: [2]string{"client", "router"}}, l},
	}
}

func run(t testing.TB, topology *lab.Topology, o lab.RunOptions) *lab.RunResult {
	t.Helper()
	if o.Folder == "" {
		o.Folder = t.TempDir()
	}
	r, err := labtest.Up(t, topology).Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A flow that offers 40 Mbit/s gets its link's rate of 20 Mbit/s, and of 5 from 2 s on, within 10 %,
// which allows for stalls of the machine. The link's counters agree with the arrivals.
func TestRunChangesRate(t *testing.T) {
	for _, backend := range []lab.Backend{lab.Veth, lab.Emulator} {
		t.Run(string(backend), func(t *testing.T) {
			labtest.Try(t, func(t *labtest.Check) { testChangesRate(t, backend) })
		})
	}
}

func testChangesRate(t testing.TB, backend lab.Backend) {
	queue := link.Amount{Time: 20 * time.Millisecond}
	was, becomes := lab.Limited(20*unit.Mbit), lab.Limited(5*unit.Mbit)
	was.Queue, becomes.Queue = queue, queue
	topology := wan(lab.LinkSpec{Forward: was, Back: was, Backend: backend})
	topology.Duration = 4 * time.Second
	topology.Timeline = []lab.Event{{At: 2 * time.Second, Link: "wan", Forward: &becomes}}
	topology.Flows = []traffic.Flow{{Name: "f", From: "client", To: "server", Protocol: traffic.UDP, Schedule: traffic.Constant(40 * unit.Mbit)}}
	var samples []lab.Sample
	r := run(t, topology, lab.RunOptions{Interval: 500 * time.Millisecond, OnSample: func(s lab.Sample) { samples = append(samples, s) }})

	f := r.Flow("f")
	before := f.Between(500*time.Millisecond, 2*time.Second).DeliveredRate()
	after := f.Between(2500*time.Millisecond, 4*time.Second).DeliveredRate()
	t.Logf("%.2f Mbit/s before, %.2f after; events %+v", before/1e6, after/1e6, r.Events)
	if math.Abs(before/20e6-1) > 0.1 || math.Abs(after/5e6-1) > 0.1 {
		t.Errorf("the flow got %.2f and %.2f Mbit/s, want 20 and 5", before/1e6, after/1e6)
	}
	if len(r.Events) != 1 || r.Events[0].What != "set wan" || math.Abs(r.Events[0].HappenedSeconds-2) > 0.5 || r.Failure() != nil {
		t.Errorf("events %+v, failure %v", r.Events, r.Failure())
	}
	l := r.Links[1]
	if l.Name != "wan" || l.Backend != backend || (l.Seed != 0) != (backend == lab.Emulator) {
		t.Errorf("link %+v", l)
	}
	// The run ends with a full receive queue, so that not all that the link carried was read.
	if off := float64(l.Forward.Total.Bytes)*8/f.Total.DeliveredL2Bits - 1; off < -0.01 || off > 0.05 || l.Forward.Total.Dropped == 0 {
		t.Errorf("the link carried %+v, %+.1f %% of what arrived", l.Forward.Total, 100*off)
	}
	var sum uint64
	for _, iv := range l.Forward.Intervals {
		sum += iv.Bytes
	}
	if n := len(l.Forward.Intervals); n != len(f.Intervals) || n != len(samples) || sum > l.Forward.Total.Bytes || float64(sum) < 0.95*float64(l.Forward.Total.Bytes) {
		t.Errorf("%d intervals of the link with %d bytes, %d of the flow, %d samples", n, sum, len(f.Intervals), len(samples))
	}
}

// Programs start and stop as specified in the timeline, with their children; their output and exit
// status are stored.
func TestRunPrograms(t *testing.T) {
	topology := wan(lab.LinkSpec{})
	sh := func(name, script string) lab.Program {
		return lab.Program{Name: name, Node: "server", Command: []string{"sh", "-c", script}}
	}
	topology.Duration = 2 * time.Second
	topology.Programs = []lab.Program{
		sh("brief", "ls /proc/self/net/dev_snmp6; echo oops >&2; exit 3"),
		sh("stopped", "sleep 1000 & echo $!; wait"),
		sh("endless", "echo here; exec sleep 1000"),
		sh("later", "echo later"),
		sh("parent", "sleep 1000 & echo $!"), // exits, but its child does not
		sh("deaf", "trap '' TERM; echo deaf; sleep 1000"),
	}
	topology.Timeline = []lab.Event{
		{At: 500 * time.Millisecond, Stop: "stopped"},
		{At: 700 * time.Millisecond, Start: "later"},
		{At: 800 * time.Millisecond, Stop: "deaf"}, // and the next event does not wait for it
		{At: 900 * time.Millisecond, Stop: "brief"},
	}
	folder := filepath.Join(t.TempDir(), "made")
	r := run(t, topology, lab.RunOptions{Folder: folder})
	got := map[string]string{}
	for _, p := range r.Programs {
		out, err := os.ReadFile(p.Output)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name == "stopped" || p.Name == "parent" {
			// The pid of its child, which was killed with it.
			if b, err := os.ReadFile("/proc/" + strings.TrimSpace(string(out)) + "/stat"); err == nil && !strings.Contains(string(b), ") Z ") {
				t.Errorf("a child still runs: %s", b)
			}
			out = nil
		}
		got[p.Name] = fmt.Sprintf("%s %d %s %q", p.Ended, p.ExitStatus, p.Signal, out)
	}
	want := map[string]string{
		"brief":   `by itself 3  "lo\nrouter\n"`,
		"stopped": `by the timeline -1 SIGTERM ""`,
		"endless": `with the run -1 SIGTERM "here\n"`,
		"later":   `by itself 0  "later\n"`,
		"parent":  `by itself 0  ""`,
		"deaf":    `by the timeline -1 SIGKILL "deaf\n"`,
	}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: %s, want %s", name, got[name], w)
		}
	}
	if b, err := os.ReadFile(filepath.Join(folder, "brief.err")); string(b) != "oops\n" {
		t.Errorf("brief's errors: %q, %v", b, err)
	}
	if len(r.Events) != 4 || r.Seconds < 2 || r.Programs[0].EndedSeconds > 1 {
		t.Errorf("%.1f s, events %+v, programs %+v", r.Seconds, r.Events, r.Programs)
	}
	for _, e := range r.Events {
		if e.HappenedSeconds < e.AtSeconds || e.HappenedSeconds > e.AtSeconds+1 {
			t.Errorf("event %+v", e)
		}
	}
	if err := r.Failure(); err == nil || !strings.Contains(err.Error(), "program brief exited with status 3: see "+folder+"/brief.err") {
		t.Errorf("failure is %v", err)
	}
}

// A missing program fails a run before it begins, or fails its event.
func TestRunMissingProgram(t *testing.T) {
	topology := wan(lab.LinkSpec{})
	topology.Duration = 200 * time.Millisecond
	topology.Programs = []lab.Program{{Name: "p", Node: "client", Command: []string{"/no/such/program"}}}
	l := labtest.Up(t, topology)
	if _, err := l.Run(t.Context(), lab.RunOptions{Folder: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "program p: ") {
		t.Errorf("at the start: %v", err)
	}
	topology.Timeline = []lab.Event{{At: 100 * time.Millisecond, Start: "p"}}
	r, err := l.Run(t.Context(), lab.RunOptions{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Failure(); err == nil || !strings.Contains(err.Error(), "at 0.1s, start p: program p: ") {
		t.Errorf("in the timeline: %v", err)
	}
}

// A run is unusable if its emulator was later than the link's bound, and names the link. With a high
// bound it is usable.
func TestRunUnusable(t *testing.T) {
	for _, bound := range []time.Duration{1, 10 * time.Second} {
		topology := wan(lab.LinkSpec{Forward: lab.Path{Spec: link.Spec{Delay: time.Millisecond}}, LateBound: bound})
		topology.Duration = time.Second
		topology.Flows = []traffic.Flow{{Name: "f", From: "client", To: "server", Protocol: traffic.UDP, Schedule: traffic.Constant(unit.Mbit)}}
		r := run(t, topology, lab.RunOptions{})
		if r.Links[1].Forward.Emulator == nil || r.Links[0].Forward.Emulator != nil {
			t.Errorf("links %+v", r.Links)
		}
		if late := len(r.Unusable) > 0; late != (bound == 1) || late && !strings.HasPrefix(r.Unusable[0], "link wan, ") {
			t.Errorf("with a bound of %v: %q", bound, r.Unusable)
		}
	}
}

// A run that ends early has the results until then. A lab of another process cannot be run.
func TestRunInterrupted(t *testing.T) {
	topology := wan(lab.LinkSpec{})
	topology.Duration = time.Minute
	topology.Programs = []lab.Program{{Name: "p", Node: "client", Command: []string{"sleep", "1000"}}}
	l := labtest.Up(t, topology)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	r, err := l.Run(ctx, lab.RunOptions{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || r.Seconds == 0 || r.Seconds > 30 || r.Programs[0].Ended != "with the run" {
		t.Errorf("%+v, %+v", r, r.Result)
	}
	other, err := lab.Attach(topology.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Run(t.Context(), lab.RunOptions{}); !errors.Is(err, lab.ErrConfig) {
		t.Errorf("run of the lab of another process: %v", err)
	}
}

// A link with its own networks is reachable like others:
//
//	client ──192.0.2.0/30── router ── server
func TestAddressesOfChoice(t *testing.T) {
	topology := wan(lab.LinkSpec{})
	parsed, err := lab.Parse("f", []byte(`kind: Lab
name: `+topology.Name+`
nodes: [client, {name: router, router: true}, server]
links:
- {ends: [client, router], addresses: {ipv4: 192.0.2.0/30, ipv6: "2001:db8::/126"}}
- {ends: [router, server]}
`))
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Up(t, parsed)
	for _, to := range []string{"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"} {
		labtest.Run(t, l.Node("server"), "ping", "-q", "-c", "1", "-W", "1", to)
	}
	labtest.Run(t, l.Node("client"), "ping", "-q", "-c", "1", "-W", "1", "10.0.1.2")
}
