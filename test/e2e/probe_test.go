package e2e

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/unit"
)

// probeTest is a lab of two hosts with a probe server on one of them:
//
//	client ==== server      5 ms each way
type probeTest struct {
	t      testing.TB
	lab    *lab.Lab
	client *lab.Node
	server *lab.Cmd
	dir    string
}

func probeLab(t testing.TB, forward, back link.Spec) *probeTest {
	t.Helper()
	topology := &lab.Topology{
		Nodes: []lab.NodeSpec{{Name: "client"}, {Name: "server"}},
		Links: []lab.LinkSpec{{Ends: [2]string{"client", "server"}, Backend: lab.Emulator}},
	}
	for i, s := range []link.Spec{forward, back} {
		s.Delay = 5 * time.Millisecond
		if s.Queue == (link.Amount{}) {
			s.Queue = link.Amount{Time: time.Second}
		}
		p := lab.Path{Spec: s, Exact: true}
		if i == 0 {
			topology.Links[0].Forward = p
		} else {
			topology.Links[0].Back = p
		}
	}
	l := labtest.Up(t, topology)
	p := newProbed(t, l, "client")
	p.server = p.serve("server")
	return p
}

// newProbed returns a probed whose client is a node of a lab, with a key for client and servers.
func newProbed(t testing.TB, l *lab.Lab, client string) *probeTest {
	t.Helper()
	p := &probeTest{t: t, lab: l, client: l.Node(client), dir: t.TempDir()}
	p.file("key", "0123456789abcdef\n")
	return p
}

func (p *probeTest) key() string { return filepath.Join(p.dir, "key") }

// serve starts a server on a node, and waits until it listens.
func (p *probeTest) serve(node string, args ...string) *lab.Cmd {
	p.t.Helper()
	c := p.command(p.lab.Node(node), append([]string{"probe", "serve", "--key-file", p.key()}, args...)...)
	heard := &lineWaiter{wanted: "listening for clients", heard: make(chan struct{})}
	c.Stderr = heard
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { end(c) })
	select {
	case <-heard.heard:
	case <-time.After(10 * time.Second):
		p.t.Fatalf("the server on %s does not listen after 10 s", node)
	}
	return c
}

// lineWaiter is a writer that closes heard when the wanted text was written.
type lineWaiter struct {
	wanted string
	text   bytes.Buffer
	heard  chan struct{}
}

func (h *lineWaiter) Write(b []byte) (int, error) {
	before := strings.Contains(h.text.String(), h.wanted)
	h.text.Write(b)
	if !before && strings.Contains(h.text.String(), h.wanted) {
		close(h.heard)
	}
	return len(b), nil
}

func (p *probeTest) stop() { end(p.server) }

// end kills a program that is still running.
func end(c *lab.Cmd) {
	if c.ProcessState == nil {
		c.Process.Kill()
		c.Wait()
	}
}

// command returns a headgate command on a node.
func (p *probeTest) command(n *lab.Node, args ...string) *lab.Cmd {
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	c := n.Command(p.t.Context(), self, args...)
	c.Env = append(os.Environ(), selfEnv+"=1")
	return c
}

// probe runs "headgate probe" and parses the report.
func (p *probeTest) probe(args ...string) (m path.Report) {
	p.t.Helper()
	full := append([]string{"probe"}, append(args, "-o", "json")...)
	if args[0] != "replay" {
		full = append(full, "--key-file", p.key())
	}
	c := p.command(p.client, full...)
	out, err := c.Output()
	if err != nil {
		p.t.Fatalf("headgate probe %s: %v\n%s%s", strings.Join(args, " "), err, out, c.Stderr)
	}
	if err := json.Unmarshal(out, &m); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	return m
}

// The token rate and bucket size of two different directions are measured over a real path with
// IPv4 and IPv6, within 1 % and a packet, and estimated again from the log.
func TestProbeTokenRate(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		limited := func(rate unit.Rate, size unit.Bytes) link.Spec {
			return link.Spec{Rate: unit.Gbit, Bucket: &link.Bucket{Rate: rate, Size: size}}
		}
		p := probeLab(t, limited(200*unit.Mbit, 100_000), limited(80*unit.Mbit, 30_000))
		log := filepath.Join(p.dir, "log")
		check := func(m path.Report) {
			t.Helper()
			for d, want := range map[probe.Direction]link.Bucket{probe.Out: {Rate: 200 * unit.Mbit, Size: 100_000}, probe.In: {Rate: 80 * unit.Mbit, Size: 30_000}} {
				a := m.Directions[d]
				if a == nil || a.TokenRate == nil {
					t.Fatalf("%s: %s was not measured", m.Host, d)
				}
				if off := a.TokenRate.Rate.Value/float64(want.Rate) - 1; math.Abs(off) > 0.01 {
					t.Errorf("%s, %s: a token rate of %s, want %s", m.Host, d, a.TokenRate.Rate.Format(probe.FormatRate), want.Rate)
				}
				if off := a.TokenRate.Bucket.Value - float64(want.Size); math.Abs(off) > max(1514, 0.02*float64(want.Size)) {
					t.Errorf("%s, %s: a bucket of %s, want %s", m.Host, d, a.TokenRate.Bucket.Format(probe.FormatBytes), want.Size)
				}
				if a.Bytes > 5_500_000 {
					t.Errorf("%s, %s: %s were sent", m.Host, d, a.Bytes)
				}
			}
		}
		check(p.probe("tokenrate", "10.0.0.2", "--capacity", "1Gbit", "--log", log))
		check(p.probe("tokenrate", "fd00::2", "--capacity", "1Gbit"))
		check(p.probe("replay", log, "--capacity", "1Gbit"))
	})
}

// Every command in docs/probe.md succeeds over a real path. Commands with two servers have their
// own tests.
func TestProbeDocCommands(t *testing.T) {
	labtest.NeedRoot(t)
	p := probeLab(t, link.Spec{Rate: 500 * unit.Mbit, Bucket: &link.Bucket{Rate: 100 * unit.Mbit, Size: 50_000}}, link.Spec{Rate: 500 * unit.Mbit})
	found := 0
	for _, commands := range codeBlocks(t, "probe.md", "", "sh") {
		for line := range strings.Lines(commands) {
			line, ours := strings.CutPrefix(strings.TrimSpace(line), "headgate ")
			if !ours || line == "probe serve" || strings.HasPrefix(line, "probe key ") || strings.HasPrefix(line, "probe compare") || strings.Contains(line, " --ticks ") {
				continue
			}
			found++
			args := strings.Fields(strings.ReplaceAll(line, "server.example.org", "10.0.0.2"))
			if args[1] != "replay" {
				args = append(args, "--key-file", p.key())
			}
			c := p.command(p.client, args...)
			c.Dir = p.dir
			if out, err := c.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("sent")) && !bytes.Contains(out, []byte(`"bytes"`)) {
				t.Errorf("headgate %s: %v\n%s", line, err, out)
			} else {
				t.Logf("headgate %s\n%s", line, out)
			}
		}
	}
	if found < 6 {
		t.Errorf("%d commands in docs/probe.md, want at least 6", found)
	}
	pictures, err := filepath.Glob(filepath.Join(p.dir, "pictures", "*.png"))
	if err != nil || len(pictures) != 6 {
		t.Errorf("pictures are %q, %v; want 6", pictures, err)
	}
}

// The errors for a killed server, an absent server and blocked UDP name the cause. The samples
// until then are printed.
func TestProbeErrors(t *testing.T) {
	labtest.NeedRoot(t)
	p := probeLab(t, link.Spec{Rate: 100 * unit.Mbit}, link.Spec{Rate: 100 * unit.Mbit})
	key := []string{"--key-file", p.key()}
	fails := func(says string, args ...string) {
		t.Helper()
		out, err := p.command(p.client, append(args, key...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), says) {
			t.Errorf("headgate %s: %v, output:\n%s", strings.Join(args, " "), err, out)
		}
	}
	// UDP packets of the server are dropped, like unknown flows at a NAT.
	labtest.Run(t, p.lab.Node("server"), "ip", "rule", "add", "ipproto", "udp", "sport", "4950", "blackhole")
	fails("no UDP datagram arrived", "probe", "capacity", "10.0.0.2")
	labtest.Run(t, p.lab.Node("server"), "ip", "rule", "del", "ipproto", "udp", "sport", "4950", "blackhole")
	// The server is killed during a measurement.
	c := p.command(p.client, append([]string{"probe", "path", "10.0.0.2", "-o", "json"}, key...)...)
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for range 100 { // a busy machine starts the client late
		if now, err := p.lab.Node("server").Command(t.Context(), "ss", "-Htn", "state", "established", "sport", "=", ":4950").Output(); err == nil && len(now) > 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(700 * time.Millisecond)
	p.stop()
	if err := c.Wait(); err == nil || !strings.Contains(said.String(), "server ") {
		t.Errorf("%v, stderr is %q", err, said.String())
	}
	var m path.Report
	if err := json.Unmarshal(out.Bytes(), &m); err != nil || m.Failed == "" {
		t.Errorf("stdout: %v:\n%s", err, out.String())
	}
	fails("start \"headgate probe serve\" there", "probe", "path", "10.0.0.2")
	fails("lookup nowhere.invalid", "probe", "path", "nowhere.invalid")
}
