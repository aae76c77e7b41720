package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// collectiveProcess is a "headgate collective run" for the sockets of this process.
type collectiveProcess struct {
	t     testing.TB
	cmd   *exec.Cmd
	said  chan []host.State
	notes bytes.Buffer // standard error, complete when the process has ended
}

// collectiveFile writes the configuration of a set of this process's connections.
func collectiveFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "collective.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "kind: Collective\nname: db\ncgroup: /%s\n", filepath.Base(labtest.Cgroup(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func startCollective(t testing.TB, file string, args ...string) *collectiveProcess {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &collectiveProcess{t: t, said: make(chan []host.State, 1000)}
	r.cmd = exec.Command(self, append([]string{"collective", "run", "-f", file, "-o", "json", "--interval", "200ms"}, args...)...)
	r.cmd.Env = append(os.Environ(), selfEnv+"=1")
	r.cmd.Stderr = io.MultiWriter(os.Stderr, &r.notes)
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.end(syscall.SIGKILL) })
	go func() {
		defer close(r.said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var s []host.State
			if json.Unmarshal(lines.Bytes(), &s) == nil {
				r.said <- s
			}
		}
	}()
	r.wait(10*time.Second, "the first reading", func(host.State) bool { return true })
	return r
}

// end sends a signal to the process and returns the error of its exit.
func (r *collectiveProcess) end(s syscall.Signal) error {
	if r.cmd.ProcessState != nil {
		return nil
	}
	r.cmd.Process.Signal(s)
	return r.cmd.Wait()
}

// wait reads states until ok accepts one.
func (r *collectiveProcess) wait(most time.Duration, what string, ok func(host.State) bool) host.State {
	r.t.Helper()
	for end := time.After(most); ; {
		select {
		case s, more := <-r.said:
			if !more {
				r.t.Fatalf("the process ended before: %s", what)
			}
			if len(s) == 1 && ok(s[0]) {
				return s[0]
			}
		case <-end:
			r.t.Fatalf("timed out after %v: %s", most, what)
		}
	}
}

// acked returns the acknowledged bytes of the connections to the ports 5001 and 5002.
func acked(s host.State) (a, b float64) {
	for _, c := range s.Connections {
		switch {
		case strings.HasSuffix(c.Remote, ":5001"):
			a = float64(c.Acked)
		case strings.HasSuffix(c.Remote, ":5002"):
			b = float64(c.Acked)
		}
	}
	return a, b
}

// Two connections of 4.8 and 2.4 Mbit/s, and UDP that leaves them 4 of 10 Mbit/s for a
// while, which TCP alone would divide equally between them:
//
//	server ── router ──10 Mbit/s, 20 ms── client
//
// The set is controlled meanwhile, at 2 to 1. A killed program leaves no connection capped, and
// the next program works and exits in order.
func TestCollectiveRun(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		file, port := collectiveFile(t), freePort(t)
		r := startCollective(t, file, "--metrics", port)
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: 10 * unit.Mbit, RTT: 20 * time.Millisecond})
		db := func(name string, port uint16, rate unit.Rate) traffic.Flow {
			return traffic.Flow{Name: name, From: "server", To: "client", Protocol: traffic.TCP, DstPort: port, Congestion: "cubic", Schedule: traffic.Constant(rate)}
		}
		flows := []traffic.Flow{db("db1", 5001, 4_800*unit.Kbit), db("db2", 5002, 2_400*unit.Kbit)}
		s, err := traffic.Start(t.Context(), l.Host, flows, traffic.Options{Duration: 60 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { s.Stop(); s.Wait() }()
		time.Sleep(8 * time.Second)
		udp := traffic.Flow{Name: "udp", From: "server", To: "client", Protocol: traffic.UDP, DstPort: 6000, Schedule: traffic.Constant(6 * unit.Mbit)}
		disturb, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{udp}, traffic.Options{Duration: 15 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		begin := r.wait(6*time.Second, "the set is controlled", func(s host.State) bool { return s.Controlling })
		time.Sleep(4 * time.Second)
		for len(r.said) > 0 {
			begin = (<-r.said)[0]
		}
		time.Sleep(8 * time.Second)
		end := begin
		for len(r.said) > 0 {
			end = (<-r.said)[0]
		}
		a0, b0 := acked(begin)
		a1, b1 := acked(end)
		t.Logf("%.2f and %.2f Mbit/s, ratio %.2f; %+v", (a1-a0)/1e6, (b1-b0)/1e6, (a1-a0)/(b1-b0), end)
		if ratio := (a1 - a0) / (b1 - b0); ratio < 1.7 || ratio > 2.3 {
			t.Errorf("ratio %.2f, want 2", ratio)
		}
		for _, command := range []string{"show", "top --once"} {
			asked := exec.Command(r.cmd.Path, append([]string{"collective"}, strings.Fields(command)...)...)
			asked.Env = r.cmd.Env
			if out, err := asked.Output(); err != nil || !strings.Contains(string(out), "controlled") || strings.Count(string(out), "\n") < 3 {
				t.Errorf("collective %s: %q, %v", command, out, err)
			}
		}
		if got := scrape(t, port); !strings.Contains(got, `headgate_collective_controlled{destination="",set="db"} 1`) || strings.Count(got, "headgate_collective_pacing_cap_bits_per_second{") < 2 {
			t.Errorf("metrics: %s", got)
		}
		r.end(syscall.SIGKILL)
		released(t)
		again := startCollective(t, file)
		disturb.Wait()
		if err := again.end(syscall.SIGTERM); err != nil {
			t.Errorf("exit after SIGTERM: %v", err)
		}
	})
}

// Clear removes what a killed program left, once, and fails while a program is running.
func TestCollectiveClear(t *testing.T) {
	labtest.NeedRoot(t)
	const name = "clear-test"
	clear := func() string {
		c := exec.Command(os.Args[0], "collective", "clear", "--instance", name)
		c.Env = append(os.Environ(), selfEnv+"=1")
		out, _ := c.CombinedOutput()
		return string(out)
	}
	r := startCollective(t, collectiveFile(t), "--instance", name)
	if got := clear(); !strings.Contains(got, "its program is running") {
		t.Errorf("clear while the program is running: %q", got)
	}
	r.end(syscall.SIGKILL)
	for _, want := range []string{name + ": cleared", name + ": nothing to clear"} {
		if got := clear(); !strings.Contains(got, want) {
			t.Errorf("clear: %q, want %q", got, want)
		}
	}
	nothingLeft(t, name)
}

// When the reader of standard output exits, the program ends and leaves nothing behind.
func TestCollectiveReader(t *testing.T) {
	labtest.NeedRoot(t)
	file := joinFile(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-c", `"$0" collective run -f "$1" --instance reader-test --interval 100ms -o json | head -n 1`, self, file)
	c.Env = append(os.Environ(), selfEnv+"=1")
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "asked") {
		t.Errorf("collective run: %q, %v", out, err)
	}
	nothingLeft(t, "reader-test")
}

// released waits until no connection of a killed program is capped. The lease of a cap is one second.
func released(t testing.TB) {
	t.Helper()
	table, err := sockops.Open("host", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	capped := func() (n int) {
		for c := range table.Connections() {
			if c.Paced > 0 || c.Clamped > 0 {
				n++
			}
		}
		return n
	}
	if capped() == 0 {
		t.Error("no connection was capped when the program was killed")
	}
	for range 30 {
		if capped() == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("%d connections are still capped 3 s after the program was killed", capped())
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func scrape(t testing.TB, at string) string {
	t.Helper()
	r, err := http.Get("http://" + at + "/metrics")
	if err != nil {
		t.Error(err)
		return ""
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("status %d: %v", r.StatusCode, err)
	}
	return string(text)
}

// A connection of another process joins a set by its descriptor number; a program joins its own connection
// with the code in docs/collective.md.
func TestCollectiveJoin(t *testing.T) {
	labtest.NeedRoot(t)
	file := joinFile(t)
	r := startCollective(t, file)
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
	join := func(set string) (string, error) {
		asked := exec.Command(r.cmd.Path, "collective", "join", set, "--pid", fmt.Sprint(os.Getpid()), "--fd", fmt.Sprint(f.Fd()), "--weight", "2")
		asked.Env = r.cmd.Env
		out, err := asked.CombinedOutput()
		return string(out), err
	}
	if said, err := join("db"); err == nil || !strings.Contains(said, `connection set "db" does not exist: use asked`) {
		t.Errorf("join db: %q, %v", said, err)
	}
	if said, err := join("asked"); err != nil {
		t.Errorf("join asked: %q, %v", said, err)
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	r.wait(5*time.Second, "the connection is in the set", func(s host.State) bool {
		return len(s.Connections) == 1 && s.Connections[0].Weight == 2 && s.Connections[0].Local == c.LocalAddr().String()
	})
	code := codeBlocks(t, "collective.md", "", "python")[0]
	code = strings.Replace(code, `{"join": name}`, `{"join": name, "weight": 3}`, 1)
	code += fmt.Sprintf("c = socket.create_connection((\"127.0.0.1\", %d))\njoin(c, \"asked\")\nc.sendall(b\"hello\")\ninput()\n", l.Addr().(*net.TCPAddr).Port)
	python := exec.Command("python3", "-c", code)
	python.Stderr = os.Stderr
	in, err := python.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := python.Start(); err != nil {
		t.Fatal(err)
	}
	r.wait(5*time.Second, "the Python program's connection is in the set", func(s host.State) bool {
		return len(s.Connections) == 2 && s.Connections[0].Weight+s.Connections[1].Weight == 5
	})
	in.Write([]byte("\n"))
	if err := python.Wait(); err != nil {
		t.Error(err)
	}
	if err := r.end(syscall.SIGTERM); err != nil {
		t.Errorf("exit after SIGTERM: %v", err)
	}
}
