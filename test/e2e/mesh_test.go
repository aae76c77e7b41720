package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/mesh"
	"headgate.dev/headgate/unit"
)

// meshLab is three servers and a host without a server, around a router. Each server's egress is
// limited:
//
//	 a --60M-- router --80M-- b       d has no server
//	c --100M-- router -- d
type meshLab struct {
	*probeTest
	addresses map[string]string
}

func newMeshLab(t testing.TB) *meshLab {
	t.Helper()
	topology := &lab.Topology{Nodes: []lab.NodeSpec{{Name: "router", Router: true}}}
	for _, h := range []struct {
		name string
		rate unit.Rate
	}{{"a", 60 * unit.Mbit}, {"b", 80 * unit.Mbit}, {"c", 100 * unit.Mbit}, {"d", 0}} {
		topology.Nodes = append(topology.Nodes, lab.NodeSpec{Name: h.name})
		l := lab.LinkSpec{Ends: [2]string{h.name, "router"}}
		if h.rate > 0 {
			l.Backend = lab.Emulator
			l.Forward = lab.Path{Exact: true, Spec: link.Spec{Rate: unit.Gbit, Delay: 4 * time.Millisecond, Queue: link.Amount{Time: time.Second}, Bucket: &link.Bucket{Rate: h.rate, Size: 50_000}}}
			l.Back = lab.Path{Exact: true} // no delay: an emulator that waits for each packet uses a processor, and two would leave the sender none of two
		}
		topology.Links = append(topology.Links, l)
	}
	l := labtest.Up(t, topology)
	m := &meshLab{newProbed(t, l, "d"), map[string]string{}}
	for _, name := range []string{"a", "b", "c", "d"} {
		ip, err := l.Node(name).Addr(name == "b") // b by IPv6
		if err != nil {
			t.Fatal(err)
		}
		m.addresses[name] = ip.String()
	}
	return m
}

// serveAll starts the servers. Each may measure to all others.
func (m *meshLab) serveAll(names ...string) {
	m.t.Helper()
	for _, name := range names {
		var args []string
		for other, at := range m.addresses {
			if other != name {
				args = append(args, "--peer", at)
			}
		}
		m.serve(name, args...)
	}
}

// measure runs the mesh of these hosts on d, which is on no path between the other hosts.
func (m *meshLab) measure(names []string, args ...string) (out, errs string, code int) {
	m.t.Helper()
	text := "kind: Servers\ncapacity: 1Gbit\nservers:\n"
	for _, name := range names {
		text += "  - {name: " + name + ", address: \"" + m.addresses[name] + "\"}\n"
	}
	file := m.file(strings.Join(names, "")+".yaml", text)
	c := m.command(m.client, append([]string{"probe", "mesh", "-f", file, "--key-file", m.key()}, args...)...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), c.ProcessState.ExitCode()
}

// Every path is measured in both directions, over IPv4 and IPv6, within 1 %. A host without a
// server is reported as failed, and the other pairs are still measured.
func TestMesh(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		m := newMeshLab(t)
		m.serveAll("a", "b", "c")
		prom := filepath.Join(m.dir, "mesh.prom")
		out, errs, code := m.measure([]string{"a", "b", "c", "d"}, "-o", "json", "--prometheus", prom)
		if code != exitFailed || !strings.Contains(errs, "6 of 12 directions were not measured") {
			t.Errorf("exit %d: %s", code, errs)
		}
		want := map[string]float64{"a": 60e6, "b": 80e6, "c": 100e6}
		rows := 0
		for line := range strings.Lines(out) {
			var r mesh.Row
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			rows++
			if r.From == "d" || r.To == "d" {
				if r.Failed == "" {
					t.Errorf("%s to %s was measured", r.From, r.To)
				}
				continue
			}
			if r.Failed != "" || r.Answer == nil || r.Answer.TokenRate == nil {
				t.Fatalf("%s to %s: %s", r.From, r.To, r.Failed)
			}
			if off := r.Answer.TokenRate.Rate.Value/want[r.From] - 1; math.Abs(off) > 0.01 {
				t.Errorf("%s to %s: %s, want %s", r.From, r.To, r.Answer.TokenRate.Rate.Format(probe.FormatRate), probe.FormatRate(want[r.From]))
			}
			if r.RTT < 8*time.Millisecond {
				t.Errorf("%s to %s: a round trip of %v", r.From, r.To, r.RTT)
			}
		}
		if rows != 12 {
			t.Errorf("%d rows:\n%s", rows, out)
		}
		text, err := os.ReadFile(prom)
		if err != nil {
			t.Error(err)
		}
		for _, want := range []string{"\nheadgate_probe_success{from=\"a\",to=\"b\"} 1\n", "\nheadgate_probe_token_rate_bits_per_second{from=\"b\",to=\"a\"} ", "\nheadgate_probe_success{from=\"d\",to=\"a\"} 0\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("missing %q in\n%s", want, text)
			}
		}
	})
}

// Two meshes over the same servers in opposite order, so that servers wait for each other, both
// finish and measure all pairs.
func TestConcurrentMeshes(t *testing.T) {
	labtest.NeedRoot(t)
	m := newMeshLab(t)
	m.serveAll("a", "b", "c")
	type end struct {
		out, errs string
		code      int
	}
	ends := make(chan end, 2)
	for _, names := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}} {
		go func() {
			out, errs, code := m.measure(names, "-o", "json")
			ends <- end{out, errs, code}
		}()
	}
	for range 2 {
		if e := <-ends; e.code != exitOK || strings.Count(e.out, `"answer"`) != 6 {
			t.Errorf("exit %d\n%s%s", e.code, e.out, e.errs)
		}
	}
}
