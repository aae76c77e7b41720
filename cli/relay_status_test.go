package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/relay/host"
)

// startRelay runs an agent as a program of its own, until the test ends. It accepts streams at its own exit's
// address, so that it carries connections to itself.
func startRelay(t *testing.T, w testEnv, name, to string) (listen string) {
	t.Helper()
	var at [2]string
	for n := range at {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at[n] = l.Addr().String()
		l.Close()
	}
	key := filepath.Join(w.dir, name+".key")
	w.must("relay", "key", key)
	server, _, _ := net.SplitHostPort(to)
	file := w.write(name+".yaml", fmt.Sprintf(`kind: Relay
name: %s
key: %s
accept: {listen: "%s", destinations: [%s/32]}
exits:
  - {address: "%[3]s", destinations: [%[4]s/32], paths: [{name: only, streams: 2}]}
forward:
  - {listen: "%[5]s", to: "%[6]s"}
`, name, key, at[0], server, at[1], to))
	c := exec.Command(os.Args[0], "relay", "run", "-f", file)
	c.Env = append(os.Environ(), fakeEnv+"="+w.dir)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
	})
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if s, err := host.QueryStatus(name); err == nil && s.Total.Streams == 4 {
			return at[1]
		}
		if time.Now().After(end) {
			t.Fatal("the agent's streams are not open after 10 s")
		}
	}
}

// status and top show a running agent with a connection as text and JSON, and status --ended shows the connection
// after its end.
func TestRelayStatus(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	}
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	name := fmt.Sprintf("cli-test-%d", os.Getpid())
	if r := w.run("relay", "status", "--agent", name); r.code != exitFailed || !strings.Contains(r.err, "relay agent "+name+" is not running on this machine: start it with") {
		t.Errorf("without an agent: %+v", r)
	}
	app, err := net.Dial("tcp", startRelay(t, w, name, l.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, command := range []string{"status", "top --once"} {
		line := append([]string{"relay"}, strings.Fields(command+" --agent "+name)...)
		text := w.must(line...).out
		for _, want := range []string{"agent " + name + " for ", "EXIT", "ENTRY", "only", l.Addr().String(), app.LocalAddr().String()} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", command, want, text)
			}
		}
		var s host.Status
		if err := json.Unmarshal([]byte(w.must(append(line, "-o", "json")...).out), &s); err != nil || s.Agent != name || len(s.Connections) != 2 || len(s.Exits[0].Paths[0].Streams) != 2 {
			t.Errorf("%s -o json: %+v, %v", command, s, err)
		}
	}
	if text := w.must("relay", "status", "--streams", "--agent", name).out; strings.Count(text, " only ") != 3 || !strings.Contains(text, "ESTIMATED") {
		t.Errorf("--streams:\n%s", text)
	}
	if text := w.must("relay", "status", "-o", "yaml", "--agent", name).out; !strings.Contains(text, "agent: "+name+"\n") {
		t.Errorf("-o yaml:\n%s", text)
	}
	app.Close()
	server.Close()
	ended := func() (out []host.ConnectionStatus) {
		if err := json.Unmarshal([]byte(w.must("relay", "status", "--ended", "-o", "json", "--agent", name).out), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for end := time.Now().Add(10 * time.Second); len(ended()) < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("ended connections: %+v", ended())
		}
	}
	if text := w.must("relay", "status", "--ended", "--agent", name).out; !strings.Contains(text, app.LocalAddr().String()) {
		t.Errorf("--ended:\n%s", text)
	}
	startRelay(t, w, name+"-too", l.Addr().String())
	if text := w.must("relay", "status").out; !strings.HasPrefix(text, "AGENT ") || !strings.Contains(text, "\n"+name+" ") || !strings.Contains(text, "\n"+name+"-too ") {
		t.Errorf("two agents:\n%s", text)
	}
	if r := w.run("relay", "status", "-o", "json"); r.code != exitFailed || !strings.Contains(r.err, "several relay agents are running: set --agent to one of ") {
		t.Errorf("two agents, -o json: %+v", r)
	}
	// An agent that does not answer hides no other.
	dir := "/run/headgate/relay"
	if os.Geteuid() != 0 {
		dir = filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "headgate", "relay")
	}
	silent, err := net.Listen("unix", filepath.Join(dir, name+"-silent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	r := w.run("relay", "status")
	if r.code != exitFailed || !strings.Contains(r.err, "cannot query the relay agent "+name+"-silent: ") || !strings.Contains(r.out, "\n"+name+" ") {
		t.Errorf("beside an agent that does not answer: %+v", r)
	}
	if text := w.must("relay", "status", "--agent", name).out; !strings.Contains(text, "agent "+name+" for ") {
		t.Errorf("--agent beside an agent that does not answer:\n%s", text)
	}
	if r := w.run("relay", "top", "--interval", "1ns", "--agent", name); r.code != exitUsage {
		t.Errorf("--interval 1ns: %+v", r)
	}
}
