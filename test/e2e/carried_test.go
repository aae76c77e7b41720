package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// A reservation with carry: relay sends the connections of a client that knows nothing of it through two relay agents, whose streams have the reserved rate
// beside greedy traffic, and beside another reservation. Before it and after it connections go direct.
//
//	client --+                       +-- server
//	near ----s1 ----- 40 Mbit/s ----s2---- far
//	noise ---+                       +-- sink
func TestCarriedReservation(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		var topology lab.Topology
		topology.Name = lab.UniqueName("carried")
		hosts := []string{"client", "near", "noise", "server", "far", "sink"}
		for n, name := range hosts {
			topology.Nodes = append(topology.Nodes, lab.NodeSpec{Name: name})
			topology.Links = append(topology.Links, lab.LinkSpec{Ends: [2]string{name, fmt.Sprint("s", 1+n/3)}})
		}
		topology.Nodes = append(topology.Nodes, lab.NodeSpec{Name: "c"})
		for n, name := range []string{"s1", "s2"} {
			topology.Switches = append(topology.Switches, lab.SwitchSpec{Name: name, ID: uint64(n + 1), Controllers: []string{"c:6653"}, Protocols: []string{"OpenFlow13"}})
		}
		narrow := lab.Path{Spec: link.Spec{Rate: 40 * unit.Mbit, Delay: time.Millisecond, Queue: link.Amount{Time: 50 * time.Millisecond}}}
		topology.Links = append(topology.Links, lab.LinkSpec{Ends: [2]string{"s1", "s2"}, Forward: narrow, Back: narrow})
		l := labtest.Up(t, &topology)
		dir := t.TempDir()
		s := serve(t, l.Node("c"), dir)
		s.localUser(dir)
		s.localCommand("login", "https://127.0.0.1:8420", "--pin", s.pin, "--token-file", filepath.Join(dir, "controller", "operator.token"))
		target, err := l.Switch("s1").Command(t.Context(), "ovs-vsctl", "get-controller", "s1").Output()
		if err != nil {
			t.Fatal(err)
		}
		addr := map[string]netip.Addr{}
		for _, h := range hosts {
			if addr[h], err = l.Node(h).Addr(false); err != nil {
				t.Fatal(err)
			}
		}
		write := func(name, text string) string {
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		}
		// The file has no rule by which anything is redirected.
		s.localCommand("network", "apply", "-f", write("network.yaml", fmt.Sprintf("kind: Network\nname: campus\nswitches: [{id: 1, name: s1}, {id: 2, name: s2}]\nlinks:\n  - {ends: [s1/4, s2/4], capacity: 40Mbit}\nlisten: [{address: %q, tls: false}]\nrelays: {agents: [%s, %s]}\n",
			strings.TrimPrefix(strings.TrimSpace(string(target)), "tcp:"), addr["near"], addr["far"])))
		for _, pair := range [][2]string{{"client", "server"}, {"near", "far"}, {"client", "near"}, {"noise", "sink"}, {"far", "server"}} {
			s.eventually(pair[0]+" reaches "+pair[1], func() bool { _, err := pingOnce(l.Node(pair[0]), addr[pair[1]]); return err == nil })
		}

		var received atomic.Int64
		seen := make(chan string, 100)
		var listener net.Listener
		to := netip.AddrPortFrom(addr["server"], 5001).String()
		if err := l.Node("server").Do(func() (err error) { listener, err = net.Listen("tcp", to); return err }); err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				seen <- c.RemoteAddr().String()
				go func() {
					defer c.Close()
					for b := make([]byte, 64<<10); ; {
						n, err := c.Read(b)
						received.Add(int64(n))
						if err != nil {
							return
						}
					}
				}()
			}
		}()
		relayed := func() (n int) {
			for _, name := range []string{"s1", "s2"} {
				out, err := l.Switch(name).Command(t.Context(), "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", name, "cookie=0x4847830000000000/0xffffff0000000000").Output()
				if err != nil {
					t.Fatal(err)
				}
				n += strings.Count(string(out), "cookie=")
			}
			return n
		}
		// sends sends to the server for a time, and returns how many flows redirect the connection, and the rate that arrives in the last half.
		sends := func(when string, length time.Duration) (flows int, rate unit.Rate) {
			t.Helper()
			var c net.Conn
			if err := l.Node("client").Do(func() (err error) { c, err = net.DialTimeout("tcp", to, 5*time.Second); return err }); err != nil {
				t.Errorf("%s: %v\n%s%s", when, err, s.localCommand("network", "events", "--kind", "relay"), s.notes.String())
				return 0, 0
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(length + 10*time.Second))
			began, half, before, b := time.Now(), time.Time{}, int64(0), make([]byte, 64<<10)
			for first := true; first || time.Since(began) < length; first = false {
				if half.IsZero() && time.Since(began) > length/2 {
					half, before = time.Now(), received.Load()
				}
				if _, err := c.Write(b); err != nil {
					t.Errorf("%s: %v\n%s%s", when, err, s.localCommand("network", "events", "--kind", "relay"), s.notes.String())
					return 0, 0
				}
			}
			rate = unit.Rate(float64(received.Load()-before) * 8 / time.Since(half).Seconds())
			flows = relayed()
			select {
			case got := <-seen:
				if got != c.LocalAddr().String() {
					t.Errorf("%s: the server sees %s, the client is %s", when, got, c.LocalAddr())
				}
			case <-time.After(5 * time.Second):
				t.Errorf("%s: the server sees no connection", when)
			}
			c.(*net.TCPConn).SetLinger(0)
			return flows, rate
		}
		// beside sends to the server beside UDP, and returns the rate.
		beside := func(when string, udp unit.Rate) unit.Rate {
			t.Helper()
			const length = 10 * time.Second
			noise, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{{Name: "noise", From: "noise", To: "sink", Protocol: traffic.UDP, DstPort: 5002, Schedule: traffic.Constant(udp)}}, traffic.Options{Duration: length + 2*time.Second, Interval: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			flows, rate := sends(when, length)
			if flows != 4 {
				t.Errorf("%s: %d flows redirect the connection, want 4\n%s", when, flows, s.notes.String())
			}
			others := unit.Rate(noise.Wait().Flow("noise").Between(length/2, length).DeliveredRate())
			t.Logf("%s: %v of payload beside %v of UDP", when, rate, others)
			return rate
		}
		show := func() (n api.Network) {
			if err := json.Unmarshal([]byte(s.localCommand("network", "show", "-o", "json")), &n); err != nil {
				t.Fatal(err)
			}
			return n
		}

		name := func(of string) string { return fmt.Sprintf("%s-%d", of, os.Getpid()) }
		key := filepath.Join(dir, "relay.key")
		s.checkOutput(0, "wrote", "relay", "key", key)
		run := func(on, at, text string) *lab.Cmd {
			device, err := l.Node(on).Device(at)
			if err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			c := l.Node(on).Command(t.Context(), self, "relay", "run", "-f", write(on+".yaml", fmt.Sprintf("kind: Relay\nname: %s\nkey: %s\nnetwork: %s\n%s", name(on), key, device, text)))
			c.Env, c.Stderr = append(os.Environ(), selfEnv+"=1"), &s.notes
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Process.Signal(syscall.SIGTERM); c.Wait() })
			return c
		}
		reserve := []string{"reserve", "create", "copy", "--from", addr["client"].String(), "--to", addr["server"].String(), "--rate", "20Mbit", "--protocol", "tcp", "--port", "5001", "--for", "1h", "--carry", "relay"}
		s.checkOutput(2, "no relay agents carry connections", reserve...)
		run("far", "s2", fmt.Sprintf("accept: {listen: [\"%[1]s:8424\", \"%[1]s:8425\"], destinations: [%s/32], keep_source: true}\n", addr["far"], addr["server"]))
		entry := fmt.Sprintf("exits:\n  - address: %[1]s:8424\n    destinations: [%s/32]\n    paths: [{name: one, address: \"%[1]s:8424\", congestion: cubic, streams: 2}, {name: two, address: \"%[1]s:8425\", congestion: cubic, streams: 2}]\ntake: [{dport: 5001}]\n", addr["far"], addr["server"])
		near := run("near", "s1", entry)
		s.eventually("the near agent has streams to the far one", func() bool {
			n := show()
			return n.Relays != nil && len(*n.Relays) == 2 && len((*n.Relays)[0].Exits)+len((*n.Relays)[1].Exits) == 1
		})
		if n, _ := sends("before the reservation", 0); n != 0 {
			t.Errorf("before the reservation %d flows redirect a connection", n)
		}

		s.checkOutput(0, "carried by relay agents "+name("near")+" and "+name("far"), reserve...)
		asks := func() bool {
			out, err := l.Switch("s1").Command(t.Context(), "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "s1", "cookie=0x4847810000000000/0xffffff0000000000").Output()
			return err == nil && strings.Contains(string(out), "tcp_flags")
		}
		meters := func(want int) func() bool {
			return func() bool {
				out, err := l.Switch("s1").Command(t.Context(), "ovs-ofctl", "-O", "OpenFlow13", "dump-meters", "s1").Output()
				return err == nil && strings.Count(string(out), "kbps") == want && asks()
			}
		}
		s.eventually("the switch has the circuit and asks about connections", meters(2))
		if rate := beside("beside greedy UDP", 60*unit.Mbit); rate < 18*unit.Mbit {
			t.Errorf("the connection has %v, want the reserved 20Mbit or more", rate)
		}
		// Nothing can be borrowed from a reservation that uses its rate.
		s.localCommand("reserve", "create", "rest", "--from", addr["noise"].String(), "--to", addr["sink"].String(), "--rate", "20Mbit", "--protocol", "udp", "--port", "5002", "--for", "1h")
		s.eventually("the switch has both circuits", meters(3))
		if rate := beside("beside another reservation", 20*unit.Mbit); rate < 16*unit.Mbit || rate > 22*unit.Mbit {
			t.Errorf("the connection has %v, want about the reserved 20Mbit", rate)
		}
		if r := show().Redirection; r == nil || r.Redirected != 2 {
			t.Errorf("the controller has counted %+v redirected connections, want 2", r)
		}

		near.Process.Kill()
		near.Wait()
		s.eventually("the missing agent is a fault", func() bool {
			return strings.Contains(s.localCommand("network", "show", "faults"), "reservation copy is carried by relay agents "+name("near"))
		})
		s.localCommand("reserve", "cancel", "copy")
		run("near", "s1", entry)
		s.eventually("the near agent has streams again", func() bool {
			n := show()
			return n.Relays != nil && len(*n.Relays) == 2 && len((*n.Relays)[0].Exits)+len((*n.Relays)[1].Exits) == 1
		})
		s.eventually("nothing is left of the reservation", func() bool { return relayed() == 0 && !asks() })
		if n, _ := sends("after the reservation", 0); n != 0 {
			t.Errorf("after the reservation %d flows redirect a connection", n)
		}
	})
}
