package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/agent/sets"
	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/lab/labtest"
)

// nothingLeft checks that an instance has left nothing in the kernel, and under /run only what the next program of its name begins with, which it removes.
func nothingLeft(t testing.TB, instance string) {
	t.Helper()
	defer func() {
		if err := host.Forget(instance); err != nil {
			t.Error(err)
		}
	}()
	find := func(dir string) ([]string, error) {
		left, err := filepath.Glob(dir + instance + "*")
		return slices.DeleteFunc(left, func(file string) bool { return strings.HasSuffix(file, ".needs.json") && instance != sets.Instance }), err
	}
	for _, dir := range []string{"/sys/fs/bpf/headgate/collective/", "/run/headgate/collective/"} {
		left, err := find(dir)
		// A running program removes its objects a little after it reports that there are none.
		for until := time.Now().Add(5 * time.Second); len(left) > 0 && time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
			left, err = find(dir)
		}
		if len(left) > 0 || err != nil {
			t.Errorf("left behind: %q (%v)", left, err)
		}
	}
}

// joinFile writes the configuration of a set that programs join.
func joinFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "collective.yaml")
	if err := os.WriteFile(file, []byte("kind: Collective\nname: asked\njoin: root\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A metrics address that is in use is an error, before anything is loaded into the kernel.
func TestCollectiveMetricsAddressInUse(t *testing.T) {
	labtest.NeedRoot(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := exec.Command(os.Args[0], "collective", "run", "-f", joinFile(t), "--instance", "metrics-test", "--metrics", l.Addr().String())
	c.Env = append(os.Environ(), selfEnv+"=1")
	if out, _ := c.CombinedOutput(); c.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(out), "cannot serve metrics") {
		t.Errorf("exit %d: %s", c.ProcessState.ExitCode(), out)
	}
	nothingLeft(t, "metrics-test")
}

// With --dry-run nothing is capped, and a note says so.
func TestCollectiveDryRun(t *testing.T) {
	labtest.NeedRoot(t)
	r := startCollective(t, joinFile(t), "--instance", "dry-test", "--dry-run")
	if err := r.end(syscall.SIGTERM); err != nil {
		t.Errorf("exit after SIGTERM: %v", err)
	}
	if got := r.notes.String(); !strings.Contains(got, "caps shown are not set") || strings.Contains(got, "removed at exit") {
		t.Errorf("notes: %q", got)
	}
}

// connect opens a connection of this process to itself: both endpoints are in the process's cgroup.
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

// A table of two connections refuses more, also for the next program, which reuses the table although it
// was started with another number. That program says so, and does not count the killed program's refusals.
func TestCollectiveTableFull(t *testing.T) {
	labtest.NeedRoot(t)
	const name = "full-test"
	file := collectiveFile(t)
	two := func(s host.State) bool { return len(s.Connections) == 2 }
	r := startCollective(t, file, "--instance", name, "--connections", "2")
	for range 3 {
		connect(t)
	}
	r.wait(5*time.Second, "two connections", two)
	r.wait(5*time.Second, "another reading", two)
	r.end(syscall.SIGKILL)
	if got := r.notes.String(); !strings.Contains(got, "connections above the limit of 2") {
		t.Errorf("notes with 6 endpoints: %q", got)
	}
	r = startCollective(t, file, "--instance", name, "--connections", "4")
	r.wait(5*time.Second, "the two connections", two)
	r.wait(5*time.Second, "another reading", two)
	if err := r.end(syscall.SIGTERM); err != nil {
		t.Errorf("exit after SIGTERM: %v", err)
	}
	got := r.notes.String()
	for _, want := range []string{"has a capacity of 2 connections: stop this program and start it again for --connections 4", "not watched: 4 connections above the limit of 2"} {
		if !strings.Contains(got, want) {
			t.Errorf("notes of the next program: %q, want %q", got, want)
		}
	}
	nothingLeft(t, name)
}

// A user other than root may neither read the state of the sets, nor join a set whose configuration does
// not name the user: exit code 3.
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
		"show":                       "only root may query the state of the sets",
		"top --once":                 "only root may query the state of the sets",
		"join asked --pid $$ --fd 4": "user 65534 may not join the set asked",
		"join asked --pid 1 --fd 0":  "cannot get descriptor 0 of process 1",
	} {
		// The program is passed as a descriptor, because the user cannot reach the file.
		asked := exec.Command("sh", "-c", fmt.Sprintf("exec /proc/self/fd/3 collective %s --instance %s", command, name))
		asked.Env = append(os.Environ(), selfEnv+"=1")
		asked.ExtraFiles = []*os.File{self, f}
		asked.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := asked.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitNotPermitted || !strings.Contains(string(out), want) {
			t.Errorf("collective %s: %q, %v", command, out, err)
		}
	}
	if err := r.end(syscall.SIGTERM); err != nil {
		t.Errorf("exit after SIGTERM: %v", err)
	}
	nothingLeft(t, name)
}

// A second program with the same instance name fails; a query for an unknown instance lists the running ones.
func TestCollectiveTwice(t *testing.T) {
	labtest.NeedRoot(t)
	const name = "twice-test"
	r := startCollective(t, joinFile(t), "--instance", name)
	for line, want := range map[string]string{
		"run -f " + joinFile(t) + " --instance " + name: "another instance " + name + " is running",
		"show --instance other-test":                    "instance other-test is not running: set --instance to one of ",
	} {
		c := exec.Command(os.Args[0], strings.Fields("collective "+line)...)
		c.Env = append(os.Environ(), selfEnv+"=1")
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("collective %s: %v: %s, want %q", line, err, out, want)
		}
	}
	if err := r.end(syscall.SIGTERM); err != nil {
		t.Errorf("exit after SIGTERM: %v", err)
	}
	nothingLeft(t, name)
}
