package e2e

import (
	"fmt"
	"net"
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

// A network of Linux routers without any switch: the agent of the first router shapes a reservation of TCP, which has its rate beside greedy
// UDP. Other traffic has what the reservation leaves unused, and when it ends the interfaces are as before.
//
//	h1 --+                        +-- h3
//	     r1 ----- 40 Mbit/s ----- r2
//	h2 --+                        +-- h4
func TestReservationOnRouters(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		const bottleneck, rate = 40 * unit.Mbit, 20 * unit.Mbit
		var topology lab.Topology
		topology.Name = lab.UniqueName("routers")
		for _, n := range []string{"h1", "h2", "h3", "h4", "c"} {
			topology.Nodes = append(topology.Nodes, lab.NodeSpec{Name: n})
		}
		for _, n := range []string{"r1", "r2"} {
			topology.Nodes = append(topology.Nodes, lab.NodeSpec{Name: n, Router: true})
		}
		for _, ends := range [][2]string{{"h1", "r1"}, {"h2", "r1"}, {"h3", "r2"}, {"h4", "r2"}, {"c", "r1"}} {
			topology.Links = append(topology.Links, lab.LinkSpec{Ends: ends})
		}
		narrow := lab.Path{Spec: link.Spec{Rate: bottleneck, Delay: time.Millisecond, Queue: link.Amount{Time: 50 * time.Millisecond}}}
		topology.Links = append(topology.Links, lab.LinkSpec{Ends: [2]string{"r1", "r2"}, Forward: narrow, Back: narrow})
		l := labtest.Up(t, &topology)
		dir := t.TempDir()
		at, err := l.Node("c").Addr(false)
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, l.Node("c"), dir, "--listen", "0.0.0.0", "--certificate-for", at.String())
		s.localUser(dir)
		s.localCommand("login", "https://127.0.0.1:8420", "--pin", s.pin, "--token-file", filepath.Join(dir, "controller", "operator.token"))
		for _, r := range []string{"r1", "r2"} {
			s.join(r, l.Node(r), at.String())
		}
		text := "kind: Network\nname: wan\nrouters: [{name: r1}, {name: r2}]\nlinks:\n  - {ends: [r1/r2, r2/r1], capacity: 40Mbit}\nhosts:\n"
		for _, h := range []string{"h1", "h2", "h3", "h4"} {
			router := map[bool]string{true: "r1", false: "r2"}[h < "h3"]
			addr, err := l.Node(h).Addr(false)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Node(h).Do(func() error {
				i, err := net.InterfaceByName(router)
				if err == nil {
					text += fmt.Sprintf("  - {name: %s, mac: %q, addresses: [%s], at: %s/%[1]s, capacity: 1Gbit}\n", h, i.HardwareAddr, addr, router)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, "network.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.localCommand("network", "apply", "-f", file)

		flows := []traffic.Flow{
			{Name: "reserved", From: "h1", To: "h3", Protocol: traffic.TCP, Congestion: "cubic", DstPort: 5001, Schedule: []traffic.Step{{Rate: 100 * unit.Mbit}, {At: 8 * time.Second, Rate: unit.Mbit}, {At: 14 * time.Second, Rate: 100 * unit.Mbit}}},
			{Name: "greedy", From: "h2", To: "h4", Protocol: traffic.UDP, DstPort: 5002, Schedule: []traffic.Step{{Rate: 60 * unit.Mbit}}},
		}
		if got := send(t, l, flows, 4*time.Second).Flow("reserved").Between(time.Second, 4*time.Second).DeliveredRate(); got > 0.5*float64(rate) {
			t.Fatalf("without a reservation it has %.1f Mbit/s: the link is not full", got/1e6)
		}
		s.eventually("the book is open", func() bool {
			_, err := s.command("reserve", "list").CombinedOutput()
			return err == nil
		})
		s.localCommand("reserve", "create", "copy", "--from", "h1", "--to", "h3", "--rate", "20Mbit", "--protocol", "tcp", "--port", "5001", "--for", "1h")
		qdiscs := func(router, dev string) string {
			return labtest.Run(t, l.Node(router), "tc", "qdisc", "show", "dev", dev)
		}
		for router, dev := range map[string]string{"r1": "r2", "r2": "h3"} { // the second one keeps the rate on the line to the host
			s.eventually("the agent of "+router+" has the reservation", func() bool { return strings.Contains(qdiscs(router, dev), "htb") })
		}
		with := send(t, l, flows, 20*time.Second)
		checkParts(t, with, []part{
			{"the reservation in use", "reserved", 3 * time.Second, 8 * time.Second, 16 * unit.Mbit, 40 * unit.Mbit}, // payload of a sawtooth
			{"best effort while it sleeps", "greedy", 11 * time.Second, 14 * time.Second, 30 * unit.Mbit, 40 * unit.Mbit},
			{"the reservation after it woke", "reserved", 15 * time.Second, 20 * time.Second, 16 * unit.Mbit, 40 * unit.Mbit},
		})
		s.localCommand("reserve", "cancel", "copy")
		for router, dev := range map[string]string{"r1": "r2", "r2": "h3"} {
			s.eventually("the interface of "+router+" is as before", func() bool { return !strings.Contains(qdiscs(router, dev), "htb") })
		}
	})
}
