package ovsdb

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const vswitchSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// server is a real ovsdb-server with a database of its own.
type server struct {
	t    *testing.T
	dir  string
	args []string
	cmd  *exec.Cmd
}

// startServer starts a server on dir/socket and the remotes.
func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	return startServerOf(t, vswitchSchema, args...)
}

func startServerOf(t *testing.T, schema string, args ...string) *server {
	t.Helper()
	for _, program := range []string{"ovsdb-server", "ovsdb-tool", "ovs-vsctl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs Open vSwitch: apt-get install openvswitch-switch: %v", err)
		}
	}
	dir, err := os.MkdirTemp("", "ovsdb") // a path of t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if out, err := exec.Command("ovsdb-tool", "create", filepath.Join(dir, "conf.db"), schema).CombinedOutput(); err != nil {
		t.Fatalf("ovsdb-tool: %v: %s", err, out)
	}
	s := &server{t: t, dir: dir, args: args}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// start starts the server, and waits until it listens.
func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command("ovsdb-server", append([]string{filepath.Join(s.dir, "conf.db"), "--remote=punix:" + filepath.Join(s.dir, "socket"),
		"--unixctl=" + filepath.Join(s.dir, "ctl"), "--log-file=" + filepath.Join(s.dir, "log"), "-vconsole:off"}, s.args...)...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that times out runs no cleanup
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.log(`(?s)ovsdb_server\|INFO\|ovsdb-server \(Open`) // after it listens
}

// kill kills the server, as a crash would.
func (s *server) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

func (s *server) address() string { return "unix:" + filepath.Join(s.dir, "socket") }

// log waits until the server's log matches, and returns the last group of the match.
func (s *server) log(expression string) string {
	s.t.Helper()
	re := regexp.MustCompile(expression)
	var text []byte
	for range 3000 {
		text, _ = os.ReadFile(filepath.Join(s.dir, "log"))
		if m := re.FindSubmatch(text); m != nil {
			return string(m[len(m)-1])
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("the server's log does not match %s:\n%s", expression, text)
	return ""
}

// port returns the port of the server's TCP or TLS remote.
func (s *server) port() string { return s.log(`listening on port (\d+)`) }

// vsctl runs ovs-vsctl, the judge, and returns its output.
func (s *server) vsctl(args ...string) string {
	s.t.Helper()
	return vsctl(s.t, s.address(), args...)
}

func vsctl(t *testing.T, address string, args ...string) string {
	t.Helper()
	c := exec.Command("ovs-vsctl", append([]string{"--no-wait", "--timeout=60", "--no-syslog", "--db=" + address}, args...)...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("ovs-vsctl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// lines returns the output of ovs-vsctl, a word of each line.
func (s *server) lines(args ...string) []string {
	s.t.Helper()
	return strings.Fields(s.vsctl(args...))
}

// list returns the rows of a table as ovs-vsctl prints them, by column, without a decoder of this package.
func (s *server) list(table string) (rows []map[string]any) {
	s.t.Helper()
	var out struct {
		Headings []string
		Data     [][]any
	}
	if err := json.Unmarshal([]byte(s.vsctl("--format=json", "list", table)), &out); err != nil {
		s.t.Fatal(err)
	}
	for _, values := range out.Data {
		row := map[string]any{}
		for i, v := range values {
			row[out.Headings[i]] = v
		}
		rows = append(rows, row)
	}
	return rows
}

func (s *server) dial() *Session {
	s.t.Helper()
	session, err := Dial(testContext(s.t), s.address(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { session.Close() })
	return session
}

func (s *server) snapshot() *Snapshot {
	s.t.Helper()
	session := s.dial()
	defer session.Close()
	snapshot, err := session.Snapshot(testContext(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	return snapshot
}

// testContext ends long after what any test should take.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// wantError checks that an error has all of the parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("there is no error, want %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error is %q, want %q in it", err, p)
		}
	}
}

func names(n int, format string) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf(format, i))
	}
	return list
}
