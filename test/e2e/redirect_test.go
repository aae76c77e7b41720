package e2e

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// A network of real switches sends connections to one port through two relay agents, of which client and server know nothing, over both paths.
// Without an agent they go direct, and nothing is left of them.
//
//	client --+          +-- c1 --+          +-- server
//	         s1 --------+        +-------- s2
//	near ----+          +-- c2 --+          +-- far
func TestRedirectOnSwitches(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		topology := switched("redirect", []string{"client", "near", "far", "server", "c"}, []string{"s1", "s2", "c1", "c2"}, [][2]string{{"client", "s1"}, {"near", "s1"}, {"far", "s2"}, {"server", "s2"}})
		path := lab.Path{Spec: link.Spec{Rate: 50 * unit.Mbit, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 50 * time.Millisecond}}}
		for _, ends := range [][2]string{{"s1", "c1"}, {"c1", "s2"}, {"s1", "c2"}, {"c2", "s2"}} {
			topology.Links = append(topology.Links, lab.LinkSpec{Ends: ends, Forward: path, Back: path})
		}
		l := labtest.Up(t, topology)
		dir := t.TempDir()
		s := serve(t, l.Node("c"), dir)
		s.localUser(dir)
		s.localCommand("login", "https://127.0.0.1:8420", "--pin", s.pin, "--token-file", filepath.Join(dir, "controller", "operator.token"))
		addr := addressesOf(t, l, "client", "near", "far", "server")
		write := func(name, text string) string {
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		}
		s.localCommand("network", "apply", "-f", write("network.yaml", fmt.Sprintf(`kind: Network
name: campus
switches: [{id: 1, name: s1}, {id: 2, name: s2}, {id: 3, name: c1}, {id: 4, name: c2}]
listen: [{address: %q, tls: false}]
relays:
  agents: [%s, %s]
  redirect: [{name: bulk, to: %s/32, ports: 5001}]
`, openFlowAddress(t, l), addr["near"], addr["far"], addr["server"])))
		for _, pair := range [][2]string{{"client", "server"}, {"near", "far"}, {"client", "near"}} {
			s.eventually(pair[0]+" reaches "+pair[1], func() bool { _, err := pingOnce(l.Node(pair[0]), addr[pair[1]]); return err == nil })
		}

		seen := make(chan string, 100)
		listeners := map[uint16]net.Listener{}
		for _, port := range []uint16{5001, 5002} {
			if err := l.Node("server").Do(func() (err error) {
				listeners[port], err = net.Listen("tcp", netip.AddrPortFrom(addr["server"], port).String())
				return err
			}); err != nil {
				t.Fatal(err)
			}
			defer listeners[port].Close()
			go func() {
				for {
					c, err := listeners[port].Accept()
					if err != nil {
						return
					}
					seen <- c.RemoteAddr().String()
					go func() {
						defer c.Close()
						io.Copy(c, c)
					}()
				}
			}()
		}
		relayed := func() int {
			n := 0
			for _, name := range []string{"s1", "s2", "c1", "c2"} {
				out, err := l.Switch(name).Command(t.Context(), "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", name, "cookie=0x4847830000000000/0xffffff0000000000").Output()
				if err != nil {
					t.Fatal(err)
				}
				n += strings.Count(string(out), "cookie=")
			}
			return n
		}
		// ask echoes a megabyte, and returns how many flows redirect it meanwhile.
		ask := func(when string, port uint16) (flows int) {
			t.Helper()
			var c net.Conn
			if err := l.Node("client").Do(func() (err error) {
				c, err = net.DialTimeout("tcp", netip.AddrPortFrom(addr["server"], port).String(), 5*time.Second)
				return err
			}); err != nil {
				t.Fatalf("%s: %v\n%s", when, err, s.notes.String())
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(10 * time.Second))
			const size = 1 << 20
			go func() {
				c.Write(make([]byte, size))
				c.(*net.TCPConn).CloseWrite()
			}()
			first := make([]byte, 1)
			if _, err := io.ReadFull(c, first); err != nil {
				t.Fatalf("%s: %v\n%s", when, err, s.notes.String())
			}
			flows = relayed()
			if got, err := io.Copy(io.Discard, c); err != nil || got != size-1 {
				t.Errorf("%s: read %d bytes, %v", when, got+1, err)
			}
			if got := <-seen; got != c.LocalAddr().String() {
				t.Errorf("%s: the server sees %s, the client is %s", when, got, c.LocalAddr())
			}
			return flows
		}
		if n := ask("without agents", 5001); n != 0 {
			t.Errorf("without agents %d flows redirect a connection", n)
		}

		name := func(of string) string { return fmt.Sprintf("%s-%d", of, os.Getpid()) }
		key := filepath.Join(dir, "relay.key")
		s.checkOutput(0, "wrote", "relay", "key", key)
		devices := map[string]string{}
		for host, at := range map[string]string{"near": "s1", "far": "s2"} {
			device, err := l.Node(host).Device(at)
			if err != nil {
				t.Fatal(err)
			}
			devices[host] = device
		}
		far := write("far.yaml", fmt.Sprintf("kind: Relay\nname: %s\nkey: %s\nnetwork: %s\naccept: {listen: [\"%[4]s:8424\", \"%[4]s:8425\"], destinations: [%s/32], keep_source: true}\n", name("far"), key, devices["far"], addr["far"], addr["server"]))
		near := write("near.yaml", fmt.Sprintf("kind: Relay\nname: %s\nkey: %s\nnetwork: %s\nexits:\n  - address: %[4]s:8424\n    destinations: [%s/32]\n    paths: [{name: one, address: \"%[4]s:8424\"}, {name: two, address: \"%[4]s:8425\"}]\ntake: [{dport: 5001}]\n",
			name("near"), key, devices["near"], addr["far"], addr["server"]))
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		run := func(on, file string) *lab.Cmd {
			c := l.Node(on).Command(t.Context(), self, "relay", "run", "-f", file)
			c.Env, c.Stderr = append(os.Environ(), selfEnv+"=1"), &s.notes
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Process.Signal(syscall.SIGTERM); c.Wait() })
			return c
		}
		run("far", far)
		agent := run("near", near)
		s.eventually("the network knows both agents", func() bool {
			return strings.Count(s.localCommand("network", "events", "--kind", "relay"), "relay agent") >= 2
		})
		s.eventually("switches ask about connections", func() bool {
			out, err := l.Switch("s1").Command(t.Context(), "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "s1", "cookie=0x4847810000000000/0xffffff0000000000").Output()
			return err == nil && strings.Contains(string(out), "tcp_flags")
		})
		if n := ask("with agents", 5001); n != 4 {
			t.Errorf("%d flows redirect a connection, want 4\n%s", n, s.notes.String())
		}
		if n := ask("another port", 5002); n > 4 {
			t.Errorf("%d flows redirect a connection to another port", n)
		}
		s.eventually("nothing is left of the connection", func() bool { return relayed() == 0 })
		agent.Process.Kill()
		agent.Wait()
		time.Sleep(time.Second)
		if n := ask("after the near agent was killed", 5001); n != 0 {
			t.Errorf("%d flows redirect a connection without the near agent", n)
		}
	})
}
