package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
)

// labProgram runs "headgate lab" and returns the exit code and the output.
func labProgram(args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &stdout, err: &stderr}
	c := labCommand(a)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	usageErrors(c)
	c.SetArgs(args)
	code = a.exit(c.Execute())
	return code, stdout.String(), stderr.String()
}

// labFile writes a lab file: client ── router ── server. link is added to the first link, and rest
// to the end of the file.
func labFile(t *testing.T, name, link, rest string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lab.yaml")
	text := fmt.Sprintf(`kind: Lab
name: %s
nodes: [client, {name: router, router: true}, server]
links:
  - {ends: [client, router]%s}
  - {ends: [router, server], rate: 50Mbit}
%s`, name, link, rest)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLabCheck(t *testing.T) {
	good := labFile(t, "good", "", "")
	code, out, errs := labProgram("check", "-f", good)
	if code != exitOK || !strings.Contains(out, "veth") || !strings.Contains(out, "10.0.1.2/24") || !strings.Contains(out, "hg-good-server") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	bad := labFile(t, "bad", ", speed: 1", "")
	code, _, errs = labProgram("check", "-f", bad)
	if code != exitUsage || !strings.HasPrefix(errs, bad+":5: links[0].speed: there is no such key") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	for _, args := range [][]string{{"check"}, {"check", "-f", "/no/such/file"}, {"up", "-x"}, {"exec", "client"}, {"run", "-f", good}, {"down", "no-such-lab"}} {
		if code, out, errs := labProgram(args...); code != exitUsage || errs == "" {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errs)
		}
	}
}

// The example in the help text is a lab file.
func TestLabExample(t *testing.T) {
	top, err := lab.Parse("example", []byte(strings.ReplaceAll(labExample, "\n  ", "\n")[2:]))
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Flows) != 3 {
		t.Errorf("%d flows", len(top.Flows))
	}
}

// client ── router ── server      up, exec and down as commands
func TestLabUpExecDown(t *testing.T) {
	labtest.NeedRoot(t)
	name := lab.UniqueName("cli")
	file := labFile(t, name, "", "")
	t.Cleanup(func() { lab.Down(name) })
	if code, out, errs := labProgram("up", "-f", file); code != exitOK || !strings.Contains(out, "50Mbit") || !strings.Contains(errs, "lab "+name+" is up: run programs on its hosts with \"headgate lab exec HOST -- COMMAND\", remove it with \"headgate lab down "+name) {
		t.Fatalf("up: exit %d\n%s%s", code, out, errs)
	}
	if code, _, errs := labProgram("up", "-f", file); code != exitUsage || !strings.Contains(errs, "headgate lab down "+name) {
		t.Errorf("up again: exit %d\n%s", code, errs)
	}
	if code, out, errs := labProgram("exec", "client", "--lab", name, "--", "ping", "-c1", "-W1", "10.0.1.2"); code != exitOK || !strings.Contains(out, "1 received") {
		t.Errorf("exec: exit %d\n%s%s", code, out, errs)
	}
	if code, _, errs := labProgram("exec", "client", "--lab", name, "--", "sh", "-c", "exit 7"); code != 7 || errs != "" {
		t.Errorf("exec of a command that exits with 7: exit %d\n%s", code, errs)
	}
	if code, _, errs := labProgram("exec", "nobody", "--lab", name, "--", "true"); code != exitUsage || !strings.Contains(errs, `no node "nobody"`) {
		t.Errorf("exec on an unknown node: exit %d\n%s", code, errs)
	}
	if code, out, errs := labProgram("down", name); code != exitOK || out != "lab "+name+" removed\n" {
		t.Errorf("down: exit %d\n%s%s", code, out, errs)
	}
}

// The commands on switches in docs/lab.md, on the lab file above them.
func TestLabSwitchesDocument(t *testing.T) {
	labtest.NeedRoot(t)
	_, section, _ := strings.Cut(readFile(filepath.Join("..", "docs", "lab.md")), "\n## Use switches\n")
	parts := regexp.MustCompile("(?s)```yaml\n(.*?)```.*?```sh\n(.*?)```").FindStringSubmatch(section)
	if parts == nil {
		t.Fatal("docs/lab.md has no file and commands in \"Use switches\"")
	}
	name := lab.UniqueName("switched")
	file := filepath.Join(t.TempDir(), "lab.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(parts[1], "name: switched", "name: "+name, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lab.Down(name) })
	ran := 0
	for line := range strings.Lines(parts[2]) {
		command, _, _ := strings.Cut(line, " #")
		args := strings.Fields(command)[2:]
		for i := range args {
			args[i] = strings.NewReplacer("switched.yaml", file, "switched", name).Replace(args[i])
		}
		if code, out, errs := labProgram(args...); code != exitOK {
			t.Errorf("%sexit %d\n%s%s", line, code, out, errs)
		}
		ran++
	}
	if ran < 5 {
		t.Errorf("%d commands", ran)
	}
}

// client ── router ── server      two flows share 50 Mbit/s for a second
func TestLabRun(t *testing.T) {
	labtest.NeedRoot(t)
	file := labFile(t, lab.UniqueName("cli"), "", `flows:
  - {name: a, from: client, to: server, rate: 10Mbit}
  - {name: b, from: client, to: server, proto: udp, rate: 20Mbit}
duration: 1s
`)
	code, out, errs := labProgram("run", "-f", file, "-o", "json")
	var r traffic.Result
	if err := json.Unmarshal([]byte(out), &r); code != exitOK || err != nil {
		t.Fatalf("run: exit %d, %v\n%s%s", code, err, out, errs)
	}
	if r.Flow("a").Total.DeliveredBytes == 0 || r.Flow("b").Total.DeliveredBytes == 0 {
		t.Errorf("%+v", r)
	}
	code, out, errs = labProgram("run", "-f", file, "--interval", "500ms")
	if code != exitOK || !strings.Contains(out, "DELIVERED") || strings.Count(errs, "\n") != 4 || !strings.Contains(errs, "headgate lab exec HOST -- COMMAND") {
		t.Errorf("run: exit %d\n%s%s", code, out, errs)
	}
}

// client ── router ──50 Mbit/s── server      every kind of flow, from one file
//
// The offered load depends only on the file, so it is checked exactly. For delivered bytes the test
// checks only that there are some, because a loaded machine can delay the traffic.
func TestLabRunApplications(t *testing.T) {
	labtest.NeedRoot(t)
	path := filepath.Join(t.TempDir(), "lab.yaml")
	text := "kind: Lab\nname: " + lab.UniqueName("apps") + `
seed: 5
nodes: [{name: client, sysctl: {net.ipv4.tcp_ecn: 1}}, {name: router, router: true}, server]
links:
  - {ends: [client, router]}
  - {ends: [router, server], rate: 50Mbit}
flows:
  - {name: steps, from: client, to: server, rate: {0s: 2Mbit, 1s: 4Mbit}}
  - {name: own, from: client, to: server, rate: 2Mbit, start: 500ms, stop: 2s, seed: 9}
  - {name: bursts, from: client, to: server, proto: udp, ecn: true, on_off: {rate: 4Mbit, on: 100ms, off: 100ms}}
  - {name: wild, from: client, to: server, on_off: {rate: 4Mbit, on: {kind: pareto, mean: 200ms, shape: 1.5, max: 1s}, off: {kind: exponential, mean: 200ms}}}
  - {name: poisson, from: client, to: server, proto: udp, payload: 500B, poisson: 2Mbit}
  - {name: users, from: client, to: server, ecn: true, requests: {users: 5, think: {kind: exponential, mean: 50ms}, request: 300B, response: {kind: uniform, min: 1kB, max: 5kB}}}
  - {name: rate, from: client, to: server, requests: {rate: 200/s, connections: 1, max_backlog: 5, request: 300B, response: {kind: lognormal, mean: 200kB, shape: 0.5}, reconnect: true}}
  - {name: file, from: server, to: client, download: true, mptcp: true, transfer: {size: 500kB, streams: 2, times: 3, pause: 50ms}}
  - {name: broken, from: client, to: server, transfer: {size: 1GB}}
  - {name: narrow, from: client, to: server, rate: unlimited, window_clamp: 64KiB, send_buffer: 64KiB, receive_buffer: 128KiB}
timeline:
  - {at: 500ms, start: bursts}
  - {at: 500ms, start: poisson}
  - {at: 500ms, start: users}
  - {at: 500ms, start: broken}
  - {at: 2500ms, stop: bursts}
  - {at: 2500ms, stop: poisson}
  - {at: 2500ms, stop: users}
  - {at: 2500ms, stop: broken}
duration: 4s
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	labtest.Try(t, func(t *labtest.Check) { testApplications(t, path) })
}

func testApplications(t testing.TB, path string) {
	code, out, errs := labProgram("run", "-f", path, "-o", "json", "--interval", "250ms")
	var r lab.RunResult
	if err := json.Unmarshal([]byte(out), &r); code != exitOK || err != nil {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	if r.Seed != 5 || r.Flow("own").Seed != 9 || len(r.Events) != 8 {
		t.Errorf("seeds %d and %d, events %+v", r.Seed, r.Flow("own").Seed, r.Events)
	}
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Total.DeliveredBytes == 0 || f.Error != "" {
			t.Errorf("%s: %d bytes were delivered, error %q", f.Name, f.Total.DeliveredBytes, f.Error)
		}
	}
	// Offered Mbit, and the relative tolerance: 2 Mbit of Poisson traffic are 460 frames,
	// whose standard deviation is 4.7 %; on-off traffic starts with either state; a run can
	// end some ms late.
	for _, c := range []struct {
		flow         string
		want, within float64
	}{{"steps", 14, 0.02}, {"own", 3, 0.001}, {"bursts", 4, 0.06}, {"poisson", 4, 0.2}} {
		if got := r.Flow(c.flow).Total.OfferedL2Bits / 1e6; math.Abs(got/c.want-1) > c.within {
			t.Errorf("%s offered %.2f Mbit, want %g", c.flow, got, c.want)
		}
	}
	users, rate := r.Flow("users").Requests, r.Flow("rate").Requests
	if users.Done == 0 || users.Failed > 0 || users.Refused > 0 || users.Connections != 5 || users.Latency.P50Us == 0 || users.UnderWay > 0 {
		t.Errorf("users: %+v", users)
	}
	if rate.Done == 0 || rate.Refused == 0 || rate.MaxBacklog != 5 || rate.Connections < rate.Done {
		t.Errorf("rate: %+v", rate)
	}
	if f := r.Flow("file"); len(f.Transfer.Completed) != 3 || f.Transfer.Failed > 0 || f.Total.DeliveredBytes != 1_500_000 || f.Subflows == 0 {
		t.Errorf("file: %+v, %d bytes, %d subflows", f.Transfer, f.Total.DeliveredBytes, f.Subflows)
	}
	if f := r.Flow("broken"); len(f.Transfer.Completed) != 0 || f.Transfer.Failed != 1 {
		t.Errorf("broken: %+v", f.Transfer)
	}
	if f := r.Flow("users"); !f.ECN || r.Flow("poisson").Total.JitterUs == 0 || r.Flow("steps").Total.CwndSegments == 0 {
		t.Errorf("ECN %v, jitter %v, window %v", f.ECN, r.Flow("poisson").Total.JitterUs, r.Flow("steps").Total.CwndSegments)
	}
	// Nothing is sent before the start, or after the stop except data in flight.
	for _, name := range []string{"bursts", "poisson", "users", "broken", "own"} {
		var before, after uint64
		for _, iv := range r.Flow(name).Intervals {
			if iv.StartSeconds+iv.Seconds < 0.49 { // the first interval, unless it started very late
				before += iv.SentBytes
			}
			if iv.StartSeconds > 3.2 {
				after += iv.SentBytes
			}
		}
		if before+after > 0 {
			t.Errorf("%s sent %d bytes before its start and %d after its stop", name, before, after)
		}
	}
}

// client ── router ──50 Mbit/s── server      only a file transfer: the run ends with the
// transfer
func TestLabRunUntilDone(t *testing.T) {
	labtest.NeedRoot(t)
	file := labFile(t, lab.UniqueName("cli"), "", `flows:
  - {name: file, from: client, to: server, transfer: {size: 1MB, streams: 2, times: 2}}
`)
	labtest.Try(t, func(t *labtest.Check) {
		code, out, errs := labProgram("run", "-f", file)
		for _, want := range []string{"TRANSFERS  DONE  FAILED  UNFINISHED  MIN", "\nfile       2     0       0           "} {
			if code != exitOK || !strings.Contains(out, want) {
				t.Fatalf("exit %d, missing %q in\n%s%s", code, want, out, errs)
			}
		}
		// The output is a heading and a line for each second.
		if n := strings.Count(errs, "\n") - 1; n > 3 {
			t.Errorf("the run took %d s\n%s", n, errs)
		}
	})
}

// A run with late segments is printed and exits with 1. The release logs and the program's output
// are in the folders of --trace and --keep.
func TestLabRunUnusable(t *testing.T) {
	labtest.NeedRoot(t)
	file := labFile(t, lab.UniqueName("cli"), ", delay: 1ms, late_bound: 1ns", `flows:
  - {name: a, from: client, to: server, rate: 1Mbit}
programs:
  - {name: p, node: client, command: [echo, hello]}
timeline:
  - {at: 500ms, link: client-router, set: {delay: 2ms}}
duration: 1s
`)
	dir := t.TempDir()
	code, out, errs := labProgram("run", "-f", file, "-o", "json", "--trace", dir, "--keep", dir)
	var r lab.RunResult
	if err := json.Unmarshal([]byte(out), &r); code != exitFailed || err != nil {
		t.Fatalf("run: exit %d, %v\n%s%s", code, err, out, errs)
	}
	if !strings.Contains(errs, "results are unusable: link client-router, ") || len(r.Unusable) == 0 {
		t.Errorf("stderr is %q, and unusable in the result is %q", errs, r.Unusable)
	}
	if !strings.Contains(errs, "link router-server has no release log, because its backend is veth") {
		t.Errorf("stderr is %q", errs)
	}
	if r.Flow("a").Total.DeliveredBytes == 0 || len(r.Links) != 2 || len(r.Events) != 1 || r.Programs[0].Ended != "by itself" {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"client-router.forward.csv", "client-router.back.csv", "p.err"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "p.out")); string(b) != "hello\n" {
		t.Errorf("the program printed %q, %v", b, err)
	}
	code, out, errs = labProgram("run", "-f", file)
	for _, want := range []string{"emulator", "set client-router {delay: 2ms}", "by itself"} {
		if code != exitFailed || !strings.Contains(out, want) {
			t.Errorf("exit %d, missing %q in\n%s%s", code, want, out, errs)
		}
	}
}

// TestLabHolder is the entry point of the process that TestLabHeld starts.
func TestLabHolder(t *testing.T) {
	file := os.Getenv("LAB_TO_HOLD")
	if file == "" {
		return
	}
	code, _, errs := labProgram("up", "-f", file)
	fmt.Fprint(os.Stderr, errs)
	os.Exit(code)
}

// client ──1 ms── router ── server      up keeps running until down stops it
func TestLabHeld(t *testing.T) {
	labtest.NeedRoot(t)
	name := lab.UniqueName("held")
	holder := exec.Command(os.Args[0], "-test.run=^TestLabHolder$")
	holder.Env = append(os.Environ(), "LAB_TO_HOLD="+labFile(t, name, ", delay: 1ms", ""))
	var errs bytes.Buffer
	holder.Stderr = &errs
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { holder.Process.Signal(syscall.SIGKILL); lab.Down(name) })
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		code, out, _ := labProgram("exec", "client", "--lab", name, "--", "ping", "-c1", "-W1", "10.0.1.2")
		if code == exitOK && strings.Contains(out, "1 received") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the lab is not up after 5 s: %s", errs.String())
		}
	}
	if code, out, downErrs := labProgram("down", name); code != exitOK {
		t.Errorf("down: exit %d\n%s%s", code, out, downErrs)
	}
	if err := holder.Wait(); err != nil {
		t.Errorf("holder: %v", err)
	}
	if !strings.Contains(errs.String(), "headgate lab down "+name) {
		t.Errorf("the holder prints %q", errs.String())
	}
}

// A lab whose process was killed cannot run commands.
func TestOnlyLab(t *testing.T) {
	dead, kept, used := lab.Leftover{Name: "dead"}, lab.Leftover{Name: "kept", Kept: true}, lab.Leftover{Name: "used", InUse: true}
	for _, c := range []struct {
		labs []lab.Leftover
		want string
		err  string
	}{
		{nil, "", "no lab on this machine"},
		{[]lab.Leftover{dead}, "", "the process of dead was killed"},
		{[]lab.Leftover{dead, kept}, "kept", ""},
		{[]lab.Leftover{used, dead}, "used", ""},
		{[]lab.Leftover{used, kept}, "", "2 labs on this machine (used, kept): select one with --lab NAME"},
	} {
		got, err := onlyLab(c.labs)
		if got != c.want || (c.err == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%v: %q, %v; want %q, %q", c.labs, got, err, c.want, c.err)
		}
	}
}
