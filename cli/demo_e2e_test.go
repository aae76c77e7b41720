package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/cli/view"
	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/lab/traffic"
	"headgate/unit"
)

// trace is what a demo could leave behind: namespaces, labs, folders, devices,
// cgroups and, unless another lab runs that may have its own, pinned maps.
func trace(t *testing.T) (out []string) {
	t.Helper()
	patterns := []string{
		"/run/netns/hg-" + demoPrefix + "-*", "/run/headgate/lab/" + demoPrefix + "-*", demoRun + "/*", "/sys/fs/cgroup/*headgate*",
	}
	labs, err := lab.Leftovers()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(labs, func(l lab.Leftover) bool { return l.InUse }) {
		patterns = append(patterns, "/sys/fs/bpf/headgate/*")
	}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, files...)
	}
	devices, err := allDevices()
	if err != nil {
		t.Fatal(err)
	}
	return append(out, devices...)
}

// TestDemo runs the whole demo, as a user would. The tolerance is the demo's own,
// of windows of 1 to 2 s: a tenth of each guarantee. What it measures may be tried
// again, because on a busy machine the programs that send and receive stand still;
// what it leaves behind may not.
//
//	client1 --+
//	client2 --+-- internet == 101/80.8 Mbit/s == uplink -- server (100/80 Mbit/s)
//	client3 --+
func TestDemo(t *testing.T) {
	labtest.NeedRoot(t)
	before := trace(t)
	labtest.Try(t, func(t *labtest.Check) { testDemo(t) })
	for _, now := range trace(t) {
		if !slices.Contains(before, now) {
			t.Errorf("the demo left %s", now)
		}
	}
}

func testDemo(t testing.TB) {
	began := time.Now()
	var out, progress bytes.Buffer
	code := Run([]string{"demo", "--fast", "-o", "json"}, strings.NewReader(""), &out, &progress)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	var r demoResult
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("exit %d: %v\n%s%s", code, err, out.String(), progress.String())
	}
	if code != done || !r.OK {
		var b strings.Builder
		_ = r.write(&b)
		t.Errorf("exit %d:\n%s", code, b.String())
	}
	if !r.CleanedUp || len(r.Left) > 0 {
		t.Errorf("it says that it left %v", r.Left)
	}
	if len(r.Phases) != demoPhases {
		t.Fatalf("there are %d phases", len(r.Phases))
	}
	for _, p := range r.Phases {
		if len(p.Groups) != 8 {
			t.Errorf("phase %d has %d rows", p.Phase, len(p.Groups))
		}
		for _, g := range p.Groups {
			if g.Wanted > 0 && g.Received == 0 {
				t.Errorf("phase %d: %s %s received nothing", p.Phase, g.Direction, g.Group)
			}
			if g.Inside && g.Retransmitted+g.Lost+g.Drops > 0 {
				t.Errorf("phase %d: %s %s, inside its guarantee, has %d retransmissions, %d lost datagrams, %d drops",
					p.Phase, g.Direction, g.Group, g.Retransmitted, g.Lost, g.Drops)
			}
		}
	}
	if len(r.Returned) != 2 {
		t.Errorf("storage had its guarantee back in %v", r.Returned)
	}
	if r.Moved.After < r.Moved.Before {
		t.Errorf("the connection that moved got %.1f and then %.1f Mbit/s", r.Moved.Before/1e6, r.Moved.After/1e6)
	}
	for _, want := range []string{"[1/6] all quiet", "$ headgate apply -f /run/headgate/demo/", "$ headgate assign web --dev uplink --conn 'tcp 10.0.0.1:9000", "change out group web"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("nothing is said of %q", want)
		}
	}
}

// killedEnv makes TestKilledDemo the demo that TestDemoSweeps kills.
const killedEnv = "HEADGATE_TEST_KILLED_DEMO"

// TestKilledDemo is a demo in a process of its own.
func TestKilledDemo(t *testing.T) {
	if os.Getenv(killedEnv) == "" {
		return
	}
	os.Exit(Run([]string{"demo", "--fast"}, strings.NewReader(""), os.Stdout, os.Stderr))
}

// TestDemoSweeps: the next demo removes what a killed one left.
func TestDemoSweeps(t *testing.T) {
	labtest.NeedRoot(t)
	before := trace(t)
	killed := exec.Command(os.Args[0], "-test.run", "^TestKilledDemo$")
	killed.Env = append(os.Environ(), killedEnv+"=1")
	killed.Stderr = os.Stderr
	told, err := killed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(told)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "[1/6]") {
	}
	_ = killed.Process.Kill()
	_ = killed.Wait()
	name := fmt.Sprintf("%s-%d", demoPrefix, killed.Process.Pid)
	if left := demoLeft(name); len(left) < 8 {
		t.Fatalf("a demo that is killed leaves %v: there is nothing to try", left)
	}
	a := &app{engines: newEngines()}
	var said bytes.Buffer
	if err := a.sweepDemos(&lineStage{w: &said}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), name) {
		t.Errorf("it says %q", said.String())
	}
	for _, now := range trace(t) {
		if !slices.Contains(before, now) {
			t.Errorf("it leaves %s", now)
		}
	}
}

// TestTopOnDevice: real counters of a real device.
//
//	client -- router -- server, limited to 20 Mbit/s
func TestTopOnDevice(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	server := inside{t, l.Node("server")}
	server.must("apply", "-f", server.file(`
kind: Interface
dev: router
out:
  limit: 20Mbit
  groups: [{name: web, guarantee: 40%, match: [{sport: 443}]}, {name: rest, guarantee: 40%, default: true}]
`))
	t.Cleanup(func() { server.must("clear", "--dev", "router") })
	session, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{{
		Name: "web", From: "server", To: "client", Protocol: traffic.UDP, SrcPort: 443, Schedule: traffic.Constant(5 * unit.Mbit),
	}}, traffic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Wait()
	defer session.Stop()
	time.Sleep(200 * time.Millisecond)
	var f view.Frame
	if err := json.Unmarshal([]byte(server.must("top", "--once", "--interval", "500ms", "-o", "json").out), &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Devices) != 1 || f.Devices[0].Dev != "router" || f.Devices[0].Seconds < 0.4 || len(f.Devices[0].Directions) != 1 {
		t.Fatalf("the frame is %+v", f)
	}
	out := f.Devices[0].Directions[0]
	// A tenth: half a second of a flow that is paced in ticks of a ms.
	if web := out.Groups[0]; web.Path != "web" || web.Rate < 4.5e6 || web.Rate > 5.5e6 || web.Guarantee != 8_000_000 {
		t.Errorf("web is %+v", web)
	}
	if rest := out.Groups[1]; rest.Rate > 0.5e6 {
		t.Errorf("rest is %+v", rest)
	}
	lines := server.must("top", "--once", "--interval", "200ms", "--dev", "router").out
	for _, want := range []string{" dev=router dir=out group=web rate=", " dev=router dir=out group=(total) rate="} {
		if !strings.Contains(lines, want) {
			t.Errorf("there is no %q in\n%s", want, lines)
		}
	}
}
