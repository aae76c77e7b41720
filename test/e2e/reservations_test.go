package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// A reservation has its rate on a full link of real switches, lends what it leaves unused, and gets that back.
//
//	h1 --+                        +-- h3
//	     s1 ----- 40 Mbit/s ----- s2
//	h2 --+                        +-- h4
func TestReservationOnSwitches(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		const bottleneck, rate = 40 * unit.Mbit, 20 * unit.Mbit
		topology := switched("reserve", []string{"h1", "h2", "h3", "h4", "c"}, []string{"s1", "s2"}, [][2]string{{"h1", "s1"}, {"h2", "s1"}, {"h3", "s2"}, {"h4", "s2"}})
		narrow := lab.Path{Spec: link.Spec{Rate: bottleneck, Queue: link.Amount{Time: 50 * time.Millisecond}}}
		topology.Links = append(topology.Links, lab.LinkSpec{Ends: [2]string{"s1", "s2"}, Forward: narrow, Back: narrow})
		l := labtest.Up(t, topology)
		dir := t.TempDir()
		s := serve(t, l.Node("c"), dir)
		s.localUser(dir)
		s.localCommand("login", "https://127.0.0.1:8420", "--pin", s.pin, "--token-file", filepath.Join(dir, "controller", "operator.token"))
		file := filepath.Join(dir, "network.yaml")
		text := "kind: Network\nname: campus\nswitches:\n  - {id: 1, name: s1}\n  - {id: 2, name: s2}\nlinks:\n  - {ends: [s1/3, s2/3], capacity: 40Mbit}\n" +
			"listen: [{address: \"" + openFlowAddress(t, l) + "\", tls: false}]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.localCommand("network", "apply", "-f", file)
		addr := addressesOf(t, l, "h1", "h2", "h3", "h4")
		for _, pair := range [][2]string{{"h1", "h3"}, {"h2", "h4"}} {
			s.eventually(pair[0]+" reaches "+pair[1], func() bool { _, err := pingOnce(l.Node(pair[0]), addr[pair[1]]); return err == nil })
		}

		// The reserved flow sleeps for some seconds in the middle.
		flows := []traffic.Flow{
			{Name: "reserved", From: "h1", To: "h3", Protocol: traffic.UDP, DstPort: 5001, Schedule: []traffic.Step{{Rate: rate}, {At: 8 * time.Second, Rate: unit.Mbit}, {At: 15 * time.Second, Rate: rate}}},
			{Name: "greedy", From: "h2", To: "h4", Protocol: traffic.UDP, DstPort: 5002, Schedule: []traffic.Step{{Rate: 60 * unit.Mbit}}},
		}
		without := send(t, l, flows, 4*time.Second)
		if got := without.Flow("reserved").Between(time.Second, 4*time.Second).DeliveredRate(); got > 0.8*float64(rate) {
			t.Fatalf("without a reservation it has %.1f Mbit/s: the link is not full", got/1e6)
		}
		s.localCommand("reserve", "create", "video", "--from", addr["h1"].String(), "--to", addr["h3"].String(), "--rate", "20Mbit", "--protocol", "udp", "--port", "5001", "--for", "1h")
		s.eventually("the switch has the circuit", func() bool {
			out, err := l.Switch("s1").Command(t.Context(), "ovs-ofctl", "-O", "OpenFlow13", "dump-meters", "s1").Output()
			return err == nil && strings.Contains(string(out), "kbps")
		})
		with := send(t, l, flows, 20*time.Second)
		checkParts(t, with, []part{
			{"the reservation in use", "reserved", 3 * time.Second, 8 * time.Second, 19 * unit.Mbit, 21 * unit.Mbit},
			{"best effort beside it", "greedy", 3 * time.Second, 8 * time.Second, 15 * unit.Mbit, 21 * unit.Mbit},
			{"best effort while it sleeps", "greedy", 12 * time.Second, 15 * time.Second, 30 * unit.Mbit, 40 * unit.Mbit},
			{"the reservation after it woke", "reserved", 18 * time.Second, 20 * time.Second, 19 * unit.Mbit, 21 * unit.Mbit},
		})
		s.localCommand("reserve", "cancel", "video")
		s.eventually("the switch has no circuit", func() bool {
			out, err := l.Switch("s1").Command(t.Context(), "ovs-ofctl", "-O", "OpenFlow13", "dump-meters", "s1").Output()
			return err == nil && !strings.Contains(string(out), "kbps")
		})
	})
}

// send sends flows and returns what arrived, each 100 ms.
func send(t *labtest.Check, l *lab.Lab, flows []traffic.Flow, length time.Duration) *traffic.Result {
	t.Helper()
	started, err := traffic.Start(t.Context(), l.Host, flows, traffic.Options{Duration: length, Interval: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return started.Wait()
}

// part is the rate that a flow is to have from one time to another.
type part struct {
	what            string
	flow            string
	from, to        time.Duration
	least, greatest unit.Rate
}

func checkParts(t *labtest.Check, r *traffic.Result, parts []part) {
	t.Helper()
	for _, p := range parts {
		got := unit.Rate(r.Flow(p.flow).Between(p.from, p.to).DeliveredRate())
		t.Logf("%s: %v", p.what, got)
		if got < p.least || got > p.greatest {
			t.Errorf("%s: %v, want %v to %v", p.what, got, p.least, p.greatest)
		}
	}
}
