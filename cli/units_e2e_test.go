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

	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/unit"
)

// Controller and agent work within the sandbox of their systemd units: capabilities, system calls,
// folders, socket families.
//
//	server (controller, agent) ── router ── client
//
// The agent has no local files and enforces the controller's configuration. A connection set controls a
// connection that is already open, in an unnamed network namespace.
func TestSystemdSandbox(t *testing.T) {
	labtest.NeedRoot(t)
	const nobody = 65534
	labtest.Try(t, func(t *labtest.Check) {
		cgroup := filepath.Base(labtest.Cgroup(t))
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
		s := &serviceTest{t: t, node: l.Node("server"), dir: t.TempDir()}
		dev, err := s.node.Device("router")
		if err != nil {
			t.Fatal(err)
		}
		in := func(name string) string { return filepath.Join(s.dir, name) }
		for _, dir := range []string{"controller", "agent", "state", "files", "/run/headgate"} {
			if !filepath.IsAbs(dir) {
				dir = in(dir)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		program := in("headgate") // readable by the controller's user
		if out, err := exec.Command("cp", self, program).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		for dir := s.dir; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(in("controller"), nobody, nobody); err != nil {
			t.Fatal(err)
		}
		notified, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: in("n"), Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer notified.Close()
		if err := os.Chmod(in("n"), 0o777); err != nil {
			t.Fatal(err)
		}
		controller, agent := unitConfinement(t, "../packaging/systemd/headgate-controller.service"), unitConfinement(t, "../packaging/systemd/headgate.service")
		controller.Program, controller.User, controller.Write = program, nobody, []string{in("controller")}
		agent.Program, agent.Write = program, []string{in("agent"), in("state"), "/run/headgate", "/sys/fs/bpf"}
		s.confined = map[string][]string{
			"controller": {controller.env(t), "NOTIFY_SOCKET=" + in("n")},
			"agent":      {agent.env(t), "HEADGATE_STATE=" + in("state")},
		}
		s.begin()
		said := make([]byte, 1000)
		notified.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := notified.Read(said); err != nil || !strings.HasPrefix(string(said[:n]), "READY=1\nSTATUS=serving https://127.0.0.1:8420") {
			t.Errorf("the service manager received %q, %v", said[:n], err)
		}
		s.agent.Process.Signal(syscall.SIGTERM)
		s.agent.Wait()
		s.agent = s.start("agent", "-f", in("files"), "--dir", in("agent"), "--socket", "")

		s.must("PUT", "/v1/hosts/h1/interfaces/"+dev, `{"out": {"limit": "40Mbit", "groups": [{"name": "a", "guarantee": "25%"}, {"name": "rest", "default": true}]}}`)
		for end := time.Now().Add(10 * time.Second); !strings.Contains(labtest.Run(t, s.node, "tc", "class", "show", "dev", dev), "40Mbit"); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the configuration is not in force after 10 s: %s", s.notes.String())
			}
		}

		const talks = `
import socket, subprocess, time
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
l = socket.create_server(("127.0.0.1", 7))
c = socket.create_connection(("127.0.0.1", 7))
d, _ = l.accept()
print("open", flush=True)
while True:
    c.send(b"x")
    d.recv(1)
    time.sleep(0.05)
`
		c := exec.CommandContext(t.Context(), "python3", "-c", talks)
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { c.Process.Kill(); c.Wait() }()
		if _, err := out.Read(make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		doc, err := json.Marshal(map[string]string{"document": fmt.Sprintf("kind: Collective\nname: db\ncgroup: /%s\nmatch: [{dport: 7}]\n", cgroup)})
		if err != nil {
			t.Fatal(err)
		}
		s.must("PUT", "/v1/hosts/h1/collectives/db", string(doc))
		s.waitSets(10*time.Second, "the set has the open connection", func(states []host.State) bool { return len(states) == 1 && len(states[0].Connections) == 1 })
		s.must("DELETE", "/v1/hosts/h1/collectives/db", "")
		s.waitSets(10*time.Second, "the set is removed", func(states []host.State) bool { return len(states) == 0 })
		nothingLeft(t, "service")
		if text := s.notes.String(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "operation not permitted") || strings.Contains(text, "read-only") {
			t.Errorf("errors in the logs: %s", text)
		}
	})
}
