package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// serviceTest is a controller and an agent on one host of a lab.
type serviceTest struct {
	t      *labtest.Check
	node   *lab.Node
	dir    string
	notes  syncBuffer
	client *http.Client
	token  string
	pin    string
	// confined has additional environment variables, by command.
	confined map[string][]string

	controller, agent *lab.Cmd
}

// syncBuffer collects the output of running processes.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *syncBuffer) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *syncBuffer) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

func serve(t *labtest.Check, node *lab.Node, dir string, args ...string) *serviceTest {
	t.Helper()
	s := &serviceTest{t: t, node: node, dir: dir}
	s.begin(args...)
	return s
}

// begin starts the controller, joins the host, and starts the host's agent.
func (s *serviceTest) begin(args ...string) {
	t, dir := s.t, s.dir
	t.Helper()
	s.controller = s.start(append([]string{"controller", "--data", filepath.Join(dir, "controller")}, args...)...)
	var pin string
	for deadline := time.Now().Add(30 * time.Second); pin == ""; time.Sleep(50 * time.Millisecond) {
		if _, after, ok := strings.Cut(s.notes.String(), "certificate pin "); ok && strings.Contains(after, "\n") {
			pin = strings.TrimSpace(after[:strings.IndexByte(after, '\n')])
		}
		if time.Now().After(deadline) {
			t.Fatalf("the controller is not ready after 30 s: %s", s.notes.String())
		}
	}
	token, err := os.ReadFile(filepath.Join(dir, "controller", "operator.token"))
	if err != nil {
		t.Fatal(err)
	}
	s.token, s.pin = strings.TrimSpace(string(token)), pin
	s.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: pki.Pinned("127.0.0.1", pin), DialContext: s.dial}}
	s.must("PUT", "/v1/hosts/h1", `{}`)
	var made struct{ Token string }
	if err := json.Unmarshal(s.must("POST", "/v1/tokens", `{"name": "join", "role": "agent", "host": "h1"}`), &made); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "join.token")
	if err := os.WriteFile(file, []byte(made.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	join := s.command("agent", "join", "https://127.0.0.1:8420", "--host", "h1", "--token-file", file, "--pin", pin, "--dir", filepath.Join(dir, "agent"))
	if out, err := join.CombinedOutput(); err != nil {
		t.Fatalf("join: %v %s", err, out)
	}
	s.agent = s.start("agent", "--dir", filepath.Join(dir, "agent"), "--socket", s.socket())
}

// socket is the path of the agent's socket.
func (s *serviceTest) socket() string { return filepath.Join(s.dir, "s") }

// dial connects from the node's namespace.
func (s *serviceTest) dial(_ context.Context, network, address string) (c net.Conn, err error) {
	err = s.node.Do(func() (err error) { c, err = net.Dial(network, address); return err })
	return c, err
}

func (s *serviceTest) command(args ...string) *lab.Cmd {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	c := s.node.Command(s.t.Context(), self, args...)
	c.Env = append(append(os.Environ(), selfEnv+"=1"), s.confined[args[0]]...)
	return c
}

func (s *serviceTest) start(args ...string) *lab.Cmd {
	s.t.Helper()
	c := s.command(args...)
	c.Stderr = &s.notes
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
	})
	return c
}

func (s *serviceTest) must(method, path, body string) []byte {
	s.t.Helper()
	status, text := s.do(method, path, body)
	if status >= 300 {
		s.t.Fatalf("%s %s: %d %s: %s", method, path, status, text, s.notes.String())
	}
	return text
}

func (s *serviceTest) do(method, path, body string) (status int, text []byte) {
	s.t.Helper()
	r, err := http.NewRequest(method, "https://127.0.0.1:8420"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	if method == "PATCH" {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	got, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	if text, err = io.ReadAll(got.Body); err != nil {
		s.t.Fatal(err)
	}
	return got.StatusCode, text
}

// rate returns the delivered rate of a group at the service, in Mbit/s, or 0 while no agent is
// connected.
func (s *serviceTest) rate(name string) float64 {
	s.t.Helper()
	var rates struct {
		Items []struct {
			Group     string
			Delivered int64 `json:"delivered_bps"`
		}
	}
	status, text := s.do("GET", "/v1/hosts/h1/rates", "")
	if status == http.StatusNotFound {
		return 0
	}
	if err := json.Unmarshal(text, &rates); err != nil {
		s.t.Fatal(err)
	}
	for _, g := range rates.Items {
		if g.Group == name {
			return float64(g.Delivered) / 1e6
		}
	}
	return 0
}

// Two groups with a greedy connection each share 40 Mbit/s, configured through the API:
//
//	server (controller, agent) ── router ── client
//
// The reported rates are correct, also after the agent was killed and restarted. The groups stay in
// force without the agent.
func TestService(t *testing.T) {
	t.Parallel() // the test mostly waits
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
		node := l.Node("server")
		dev, err := node.Device("router")
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, node, t.TempDir())
		in := "/v1/hosts/h1/interfaces/" + dev
		s.must("PUT", in, `{"out": {"limit": "40Mbit", "groups": [
			{"name": "a", "guarantee": "25%", "match": [{"dport": ["5001"]}]},
			{"name": "b", "guarantee": "75%", "match": [{"dport": ["5002"]}]},
			{"name": "rest", "default": true}]}}`)
		flow := func(name string, port uint16) traffic.Flow {
			return traffic.Flow{Name: name, From: "server", To: "client", Protocol: traffic.TCP, DstPort: port, Congestion: "cubic", Schedule: traffic.Constant(traffic.Unlimited)}
		}
		f, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{flow("a", 5001), flow("b", 5002)}, traffic.Options{Duration: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { f.Stop(); f.Wait() }()
		divided := func(when string, a, b float64) {
			t.Helper()
			var x, y float64
			for range 100 {
				time.Sleep(100 * time.Millisecond)
				if x, y = s.rate("a"), s.rate("b"); math.Abs(x-a) < 0.05*a && math.Abs(y-b) < 0.05*b {
					return
				}
			}
			t.Errorf("%s: %.1f and %.1f Mbit/s, want %v and %v: %s", when, x, y, a, b, s.notes.String())
		}
		divided("at first", 10, 30)
		s.must("PATCH", in+"/out/groups/b", `{"guarantee": "10Mbit"}`)
		s.must("PATCH", in+"/out/groups/a", `{"guarantee": "30Mbit"}`)
		divided("after a change", 30, 10)
		s.agent.Process.Signal(syscall.SIGKILL)
		s.agent.Wait()
		if out := labtest.Run(t, node, "tc", "class", "show", "dev", dev); !strings.Contains(out, "rate 29464Kbit") {
			t.Errorf("without the agent the classes are %s", out)
		}
		s.must("PATCH", in+"/out/groups/a", `{"guarantee": "20Mbit"}`)
		s.must("PATCH", in+"/out/groups/b", `{"guarantee": "20Mbit"}`)
		s.start("agent", "--dir", filepath.Join(s.dir, "agent"))
		divided("after the restart of the agent", 20, 20)
		usage := string(s.must("GET", "/v1/usage?since="+time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), ""))
		if !strings.Contains(usage, fmt.Sprintf(`"dev":%q`, dev)) || strings.Contains(usage, `"missing":["h1"]`) {
			t.Errorf("the usage is %s", usage)
		}
		if told := string(s.must("GET", "/v1/hosts/h1", "")); !strings.Contains(told, `"owner":"controller"`) || !strings.Contains(told, `"connected":true`) {
			t.Errorf("the host is %s", told)
		}
	})
}

// Commands with --server do on a host of a service what they do locally.
func TestServer(t *testing.T) {
	t.Parallel() // the test mostly waits
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
		node := l.Node("server")
		dev, err := node.Device("router")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		s := serve(t, node, dir)
		file := filepath.Join(dir, "groups.yaml")
		write := func(guarantee string) {
			t.Helper()
			text := fmt.Sprintf("kind: Interface\ndev: %s\nout:\n  limit: 40Mbit\n  groups:\n    - {name: web, guarantee: %s, match: [{dport: 443}]}\n    - {name: rest, default: true}\n", dev, guarantee)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		exit := func(args ...string) (string, int) {
			t.Helper()
			c := s.command(args...)
			c.Env = append(c.Env, "XDG_CONFIG_HOME="+dir)
			out, err := c.CombinedOutput()
			if c.ProcessState == nil {
				t.Fatal(err)
			}
			return string(out), c.ProcessState.ExitCode()
		}
		says := func(want string, args ...string) {
			t.Helper()
			if out, code := exit(args...); code != 0 || !strings.Contains(out, want) {
				t.Errorf("headgate %s: %d %s, want %q", strings.Join(args, " "), code, out, want)
			}
		}
		there := func(args ...string) []string { return append(args, "--server", "default", "--host", "h1") }
		write("25%")
		if out, code := exit(there("apply", "-f", file)...); code != 1 || !strings.Contains(out, "headgate login") {
			t.Errorf("without a login: %d %s", code, out)
		}
		says("logged in as first, operator", "login", "https://127.0.0.1:8420", "--pin", s.pin, "--token-file", filepath.Join(dir, "controller", "operator.token"))
		says("add    out group web", there("plan", "-f", file)...)
		says("add    out group web", there("apply", "-f", file)...)
		says("up to date", there("plan", "-f", file)...)
		write("50%")
		says("change out group web: guarantee 10Mbit -> 20Mbit", there("apply", "-f", file, "--dry-run")...)
		says("change out group web: guarantee 10Mbit -> 20Mbit", there("apply", "-f", file)...)
		write("150%")
		if out, code := exit(there("apply", "-f", file)...); code != 2 || !strings.Contains(out, "groups.yaml") {
			t.Errorf("guarantees above the limit: %d %s", code, out)
		}
		for range 50 { // until the agent has reported
			if out, _ := exit(there("show", "-o", "json")...); strings.Contains(out, `"20Mbit"`) {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		says("20Mbit", there("show")...)
		says("RATE", there("show", "--over", "1s")...)
		says("", there("assign", "web", "--dev", dev, "--conn", "tcp 10.0.0.1:443 10.0.0.2:55000")...)
		says("", there("unassign", "--dev", dev, "--conn", "tcp 10.0.0.2:55000 10.0.0.1:443")...)
		if out, code := exit(there("unassign", "--dev", dev, "--conn", "tcp 10.0.0.2:55000 10.0.0.1:443")...); code != 1 || !strings.Contains(out, "not found") {
			t.Errorf("a connection that is not assigned: %d %s", code, out)
		}
		says("GUARANTEED", "report", "--since", "1h")
		says("host,dev,direction,group", "report", "--since", "1h", "-o", "csv")
		says("hg_", "token", "create", "viewer", "--role", "viewer")
		says("viewer", "token", "list")
		says("cleared", there("clear", "--dev", dev)...)
		for range 50 {
			if out := labtest.Run(t, node, "tc", "class", "show", "dev", dev); out == "" {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Error("the groups are still in force after clear")
	})
}
