package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/lab/traffic"
)

// labProgram is "headgate lab" alone. It gives the exit code and what was printed.
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

// labFile writes a lab file: client ── router ── server, with one link's and the
// flows' text from the caller.
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
	if code != done || !strings.Contains(out, "veth") || !strings.Contains(out, "10.0.1.2/24") || !strings.Contains(out, "hg-good-server") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	bad := labFile(t, "bad", ", speed: 1", "")
	code, _, errs = labProgram("check", "-f", bad)
	if code != wrong || !strings.HasPrefix(errs, bad+":5: links[0].speed: there is no such key") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	for _, args := range [][]string{{"check"}, {"check", "-f", "/no/such/file"}, {"up", "-x"}, {"exec", "client"}, {"run", "-f", good}, {"down", "no-such-lab"}} {
		if code, out, errs := labProgram(args...); code != wrong || errs == "" {
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

// client ── router ── server      up, exec, down, as a user types them
func TestLabUpExecDown(t *testing.T) {
	labtest.NeedRoot(t)
	name := lab.UniqueName("cli")
	file := labFile(t, name, "", "")
	t.Cleanup(func() { lab.Down(name) })
	if code, out, errs := labProgram("up", "-f", file); code != done || !strings.Contains(out, "50Mbit") {
		t.Fatalf("up: exit %d\n%s%s", code, out, errs)
	}
	if code, _, errs := labProgram("up", "-f", file); code != wrong || !strings.Contains(errs, "headgate lab down "+name) {
		t.Errorf("up again: exit %d\n%s", code, errs)
	}
	if code, out, errs := labProgram("exec", "client", "--lab", name, "--", "ping", "-c1", "-W1", "10.0.1.2"); code != done || !strings.Contains(out, "1 received") {
		t.Errorf("exec: exit %d\n%s%s", code, out, errs)
	}
	if code, _, errs := labProgram("exec", "client", "--lab", name, "--", "false"); code != failed || !strings.Contains(errs, "false: exit status 1") {
		t.Errorf("exec false: exit %d\n%s", code, errs)
	}
	if code, _, errs := labProgram("exec", "nobody", "--lab", name, "--", "true"); code != wrong || !strings.Contains(errs, `no node "nobody"`) {
		t.Errorf("exec in nobody: exit %d\n%s", code, errs)
	}
	if code, out, errs := labProgram("down", name); code != done || out != "lab "+name+" is removed\n" {
		t.Errorf("down: exit %d\n%s%s", code, out, errs)
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
	if err := json.Unmarshal([]byte(out), &r); code != done || err != nil {
		t.Fatalf("run: exit %d, %v\n%s%s", code, err, out, errs)
	}
	if r.Flow("a").Total.DeliveredBytes == 0 || r.Flow("b").Total.DeliveredBytes == 0 {
		t.Errorf("%+v", r)
	}
	code, out, errs = labProgram("run", "-f", file, "--interval", "500ms")
	if code != done || !strings.Contains(out, "DELIVERED") || strings.Count(errs, "\n") != 3 {
		t.Errorf("run: exit %d\n%s%s", code, out, errs)
	}
}

// A run that was too late is printed and exits with 1; its release logs and what
// its program printed are where they were asked for.
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
	if err := json.Unmarshal([]byte(out), &r); code != failed || err != nil {
		t.Fatalf("run: exit %d, %v\n%s%s", code, err, out, errs)
	}
	if !strings.Contains(errs, "this run cannot be used: link client-router, ") || len(r.Unusable) == 0 {
		t.Errorf("it says %q, and in the result %q", errs, r.Unusable)
	}
	if !strings.Contains(errs, "link router-server has no release log, because its backend is veth") {
		t.Errorf("it says %q", errs)
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
		if code != failed || !strings.Contains(out, want) {
			t.Errorf("exit %d, there is no %q in\n%s%s", code, want, out, errs)
		}
	}
}

// TestLabHolder is the process that TestLabHeld starts.
func TestLabHolder(t *testing.T) {
	file := os.Getenv("LAB_TO_HOLD")
	if file == "" {
		return
	}
	code, _, errs := labProgram("up", "-f", file)
	fmt.Fprint(os.Stderr, errs)
	os.Exit(code)
}

// client ──1 ms── router ── server      up stays, and down ends it
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
		if code == done && strings.Contains(out, "1 received") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the lab does not come up: %s", errs.String())
		}
	}
	if code, out, downErrs := labProgram("down", name); code != done {
		t.Errorf("down: exit %d\n%s%s", code, out, downErrs)
	}
	if err := holder.Wait(); err != nil {
		t.Errorf("holder: %v", err)
	}
	if !strings.Contains(errs.String(), "headgate lab down "+name) {
		t.Errorf("the holder says %q", errs.String())
	}
}
