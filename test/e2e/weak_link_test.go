package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// A link of a network of switches gives 60 % of what the file says. Scheduled measurements between hosts at both ends find it, the file puts the measured
// capacity in force, and reservations are admitted within it.
//
//	a1, a2, c -- s1 -- s2 -- b1, b2
func TestWeakLink(t *testing.T) {
	t.Parallel() // the test mostly waits
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		hosts := []string{"a1", "a2", "b1", "b2"}
		var topology lab.Topology
		topology.Name = lab.UniqueName("weak")
		for _, n := range append(hosts, "c") {
			topology.Nodes = append(topology.Nodes, lab.NodeSpec{Name: n})
		}
		for n, name := range []string{"s1", "s2"} {
			topology.Switches = append(topology.Switches, lab.SwitchSpec{Name: name, ID: uint64(n + 1), Controllers: []string{"c:6653"}, Protocols: []string{"OpenFlow13"}})
		}
		for _, ends := range [][2]string{{"a1", "s1"}, {"a2", "s1"}, {"c", "s1"}, {"b1", "s2"}, {"b2", "s2"}} {
			topology.Links = append(topology.Links, lab.LinkSpec{Ends: ends})
		}
		limited := lab.Path{Spec: link.Spec{Rate: 50 * unit.Mbit, Bucket: &link.Bucket{Rate: 30 * unit.Mbit, Size: 30_000}}}
		topology.Links = append(topology.Links, lab.LinkSpec{Ends: [2]string{"s1", "s2"}, Forward: limited, Back: limited})
		l := labtest.Up(t, &topology)
		addr := map[string]netip.Addr{}
		var err error
		for _, name := range append(hosts, "c") {
			if addr[name], err = l.Node(name).Addr(false); err != nil {
				t.Fatal(err)
			}
		}
		dir, at := t.TempDir(), addr["c"].String()
		s := serve(t, l.Node("c"), dir, "--listen", "0.0.0.0", "--certificate-for", at)
		s.credentials()
		target, err := l.Switch("s1").Command(t.Context(), "ovs-vsctl", "get-controller", "s1").Output()
		if err != nil {
			t.Fatal(err)
		}
		apply := func(more string) {
			file := filepath.Join(dir, "network.yaml")
			text := fmt.Sprintf("kind: Network\nname: campus\nswitches: [{id: 1, name: s1}, {id: 2, name: s2}]\nlisten: [{address: %q, tls: false}]\nlinks: [{ends: [s1/%s, s2/%s], capacity: 50Mbit}]\n%s",
				strings.TrimPrefix(strings.TrimSpace(string(target)), "tcp:"), portTo(t, l, "s1", "s2"), portTo(t, l, "s2", "s1"), more)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s.checkOutput(0, "", "network", "apply", "-f", file)
		}
		apply("")
		for _, name := range hosts {
			s.eventually(name+" reaches the controller", func() bool { _, err := pingOnce(l.Node(name), addr["c"]); return err == nil })
			s.join(name, l.Node(name), at)
		}
		s.schedule("measures: [{measure: path, every: 1m}]\nbytes: 8MB\nbudget: 2GB\nhosts: [{host: a1, links: [wan]}, {host: a2, links: [wan]}, {host: b1, links: [wan]}, {host: b2, links: [wan]}]\n")
		defer func() {
			if t.Failed() {
				out, _ := s.run("probe", "results")
				t.Logf("the results are\n%s", out)
			}
		}()
		// Each pair is measured once in half a minute, and again where a busy machine has spoiled a measurement.
		s.within(2*time.Minute, "the link is found, in both directions and alone", func() bool {
			out, _ := s.run("network", "show", "faults")
			return strings.Count(out, "write capacity: ") == 2 && strings.Count(out, "weak-link") == 2
		})
		apply("apply_measured: 50%\n")
		s.eventually("the measured capacity is in force", func() bool {
			out, _ := s.run("network", "show", "links")
			return strings.Contains(out, "measured")
		})
		whatIf := func(rate string) string {
			out, _ := s.run("reserve", "what-if", "--from", addr["a1"].String(), "--to", addr["b1"].String(), "--rate", rate, "--for", "1h")
			return out
		}
		s.eventually("no more than it gives can be reserved", func() bool { return strings.Contains(whatIf("35Mbit"), "more than any link can reserve") })
		if out := whatIf("28Mbit"); !strings.Contains(out, "active") {
			t.Errorf("what the link gives cannot be reserved: %s", out)
		}
		s.checkOutput(0, "capacity-changed", "network", "events", "--kind", "capacity")
	})
}

func portTo(t *labtest.Check, l *lab.Lab, of, to string) string {
	p, err := l.Switch(of).Port(to)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(p.Number)
}
