package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/collective/host"
	"headgate/lab/labtest"
)

// nothingLeft tells of what an instance has in the kernel, or under /run.
func nothingLeft(t testing.TB, instance string) {
	t.Helper()
	for _, dir := range []string{"/sys/fs/bpf/headgate/collective/", "/run/headgate/collective/"} {
		left, err := filepath.Glob(dir + instance + "*")
		// A program that goes on takes it away a little later than it says that nothing is there.
		for until := time.Now().Add(5 * time.Second); len(left) > 0 && time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
			left, err = filepath.Glob(dir + instance + "*")
		}
		if len(left) > 0 || err != nil {
			t.Errorf("it leaves %q (%v)", left, err)
		}
	}
}

// joinFile is the configuration of a set that is asked for.
func joinFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "collective.yaml")
	if err := os.WriteFile(file, []byte("kind: Collective\nname: asked\njoin: root\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// An address for metrics that is taken is an error, before anything is in the kernel.
func TestCollectiveMetricsTaken(t *testing.T) {
	labtest.NeedRoot(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := exec.Command(os.Args[0], "collective", "run", "-f", joinFile(t), "--instance", "metrics-test", "--metrics", l.Addr().String())
	c.Env = append(os.Environ(), selfEnv+"=1")
	if out, _ := c.CombinedOutput(); c.ProcessState.ExitCode() != failed || !strings.Contains(string(out), "cannot serve metrics") {
		t.Errorf("exit %d: %s", c.ProcessState.ExitCode(), out)
	}
	nothingLeft(t, "metrics-test")
}

// With --dry-run nothing is capped, and it says so.
func TestCollectiveDryRun(t *testing.T) {
	labtest.NeedRoot(t)
	r := startCollective(t, joinFile(t), "--instance", "dry-test", "--dry-run")
	if err := r.end(syscall.SIGTERM); err != nil {
		t.Errorf("it does not end well: %v", err)
	}
	if got := r.notes.String(); !strings.Contains(got, "nothing is capped") || strings.Contains(got, "lifts") {
		t.Errorf("it says %q", got)
	}
}

// connect opens a connection of this process to itself: both ends are in its cgroup.
func connect(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
}

// A table of two has room for no more, also for the program that takes it over with another
// number: it says so, and counts none that the killed one left alone before.
func TestCollectiveTableFull(t *testing.T) {
	labtest.NeedRoot(t)
	const name = "full-test"
	file := collectiveFile(t)
	two := func(s host.State) bool { return len(s.Connections) == 2 }
	r := startCollective(t, file, "--instance", name, "--connections", "2")
	for range 3 {
		connect(t)
	}
	r.wait(5*time.Second, "it has two", two)
	r.wait(5*time.Second, "it has looked again", two)
	r.end(syscall.SIGKILL)
	if got := r.notes.String(); !strings.Contains(got, "connections, because there is room for 2") {
		t.Errorf("with 6 ends it says %q", got)
	}
	r = startCollective(t, file, "--instance", name, "--connections", "4")
	r.wait(5*time.Second, "it has the two", two)
	r.wait(5*time.Second, "it has looked again", two)
	if err := r.end(syscall.SIGTERM); err != nil {
		t.Errorf("it does not end well: %v", err)
	}
	got := r.notes.String()
	for _, want := range []string{"has room for 2 connections: end this one and start it again for --connections 4", "left alone: 4 connections, because there is room for 2"} {
		if !strings.Contains(got, want) {
			t.Errorf("the next one says %q, and not %q", got, want)
		}
	}
	nothingLeft(t, name)
}

// Another user may neither see what the sets are doing, nor join one whose configuration does
// not name it: that is exit code 3.
func TestCollectiveNotPermitted(t *testing.T) {
	labtest.NeedRoot(t)
	const name = "refuse-test"
	r := startCollective(t, joinFile(t), "--instance", name)
	self, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for command, want := range map[string]string{
		"show":                       "what the sets are doing is for root",
		"top --once":                 "what the sets are doing is for root",
		"join asked --pid $$ --fd 4": "the user 65534 may not join the set asked",
		"join asked --pid 1 --fd 0":  "cannot have descriptor 0 of process 1",
	} {
		// The program is a descriptor, for nobody else may reach the file.
		asked := exec.Command("sh", "-c", fmt.Sprintf("exec /proc/self/fd/3 collective %s --instance %s", command, name))
		asked.Env = append(os.Environ(), selfEnv+"=1")
		asked.ExtraFiles = []*os.File{self, f}
		asked.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := asked.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != notPermitted || !strings.Contains(string(out), want) {
			t.Errorf("collective %s says %q, %v", command, out, err)
		}
	}
	if err := r.end(syscall.SIGTERM); err != nil {
		t.Errorf("it does not end well: %v", err)
	}
	nothingLeft(t, name)
}

// Of one name one program runs: the second is told so, and who asks for another of which there are.
func TestCollectiveTwice(t *testing.T) {
	labtest.NeedRoot(t)
	const name = "twice-test"
	r := startCollective(t, joinFile(t), "--instance", name)
	for line, want := range map[string]string{
		"run -f " + joinFile(t) + " --instance " + name: "an instance " + name + " runs already",
		"show --instance other-test":                    "no instance other-test runs, but ",
	} {
		c := exec.Command(os.Args[0], strings.Fields("collective "+line)...)
		c.Env = append(os.Environ(), selfEnv+"=1")
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("collective %s: %v: %s, want %q", line, err, out, want)
		}
	}
	if err := r.end(syscall.SIGTERM); err != nil {
		t.Errorf("it does not end well: %v", err)
	}
	nothingLeft(t, name)
}
