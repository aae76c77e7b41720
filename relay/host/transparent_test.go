package host

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/relay"
)

// A connection that a router forwards is carried over the relay, and its server sees the client's address. A
// connection goes direct while there is no stream to the exit, and after the agents have ended, nothing is left.
//
//	client == entry == exit == server
func TestTransparent(t *testing.T) {
	labtest.NeedRoot(t)
	l := labtest.Up(t, &lab.Topology{
		Nodes: []lab.NodeSpec{{Name: "client"}, {Name: "entry", Router: true}, {Name: "exit", Router: true}, {Name: "server"}},
		Links: []lab.LinkSpec{{Ends: [2]string{"client", "entry"}}, {Ends: [2]string{"entry", "exit"}}, {Ends: [2]string{"exit", "server"}}},
	})
	client, entry, exit, server := l.Node("client"), l.Node("entry"), l.Node("exit"), l.Node("server")
	for _, four := range []bool{true, false} {
		at := func(n *lab.Node) netip.Addr {
			a, err := n.Addr(!four)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		to := at(server)
		bits := 24
		if !four {
			bits = 64
		}
		destination, _ := to.Prefix(bits)
		var listener net.Listener
		do(t, server, func() (err error) {
			listener, err = net.Listen("tcp", netip.AddrPortFrom(to, 7).String())
			return err
		})
		defer listener.Close()
		sees := make(chan string, 10)
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
				sees <- host
				go func() {
					defer c.Close()
					io.Copy(c, c)
				}()
			}
		}()
		ask := func(when string) {
			t.Helper()
			var c net.Conn
			do(t, client, func() (err error) {
				c, err = net.DialTimeout("tcp", listener.Addr().String(), 5*time.Second)
				return err
			})
			defer c.Close()
			c.SetDeadline(time.Now().Add(5 * time.Second))
			io.WriteString(c, "hello")
			c.(*net.TCPConn).CloseWrite()
			if got, err := io.ReadAll(c); err != nil || string(got) != "hello" {
				t.Errorf("%s: read %q, %v", when, got, err)
			}
			if got := <-sees; got != at(client).String() {
				t.Errorf("%s: the server sees %s, the client is %s", when, got, at(client))
			}
		}
		ask("without a relay")
		var agents []*lab.Cmd
		run := func(n *lab.Node, p relay.Policy) { agents = append(agents, startAgent(t, n, p)) }
		address := netip.AddrPortFrom(at(exit), 8424)
		run(entry, relay.Policy{
			Name: "entry", Exits: []relay.Exit{{Address: address, Destinations: []netip.Prefix{destination}, Paths: []relay.Path{{Name: "any", Streams: 2}}}},
			Take: []relay.Rule{{Ports: []relay.Ports{{From: 7, To: 7}}}},
		})
		ask("without an exit")
		run(exit, relay.Policy{Name: "exit", Accept: relay.Accept{Listen: address.String(), Destinations: []netip.Prefix{destination}, KeepSource: true}})
		taken := func() bool { return strings.Contains(labtest.Run(t, entry, "nft", "list", "ruleset"), "tproxy") }
		until(t, "connections are taken", taken)
		// What the client sends itself does not pass the exit.
		for _, rule := range []string{"add table inet block", "add chain inet block forward { type filter hook forward priority 0; }", "add rule inet block forward tcp dport 7 drop"} {
			labtest.Run(t, exit, "nft", rule)
		}
		ask("over the relay")
		labtest.Run(t, exit, "nft", "delete table inet block")
		for _, c := range agents {
			endAgent(t, c)
		}
		for _, n := range []*lab.Node{entry, exit} {
			if left := labtest.Run(t, n, "nft", "list", "ruleset") + labtest.Run(t, n, "ip", "rule", "show"); strings.Contains(left, "headgate") || strings.Contains(left, "8424") {
				t.Errorf("%s is left", left)
			}
		}
		ask("after the relay")
	}
}

// agentEnv has the policy of an agent, as which the test's program runs in the network namespace of a node.
const agentEnv = "HEADGATE_TEST_RELAY"

// startAgent runs an agent in a node, and returns when it is ready.
func startAgent(t *testing.T, n *lab.Node, p relay.Policy) *lab.Cmd {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	c := n.Command(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), agentEnv+"="+string(text))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatalf("the agent does not start: %v", err)
	}
	return c
}

func TestMain(m *testing.M) {
	text := os.Getenv(agentEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	var p relay.Policy
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		var auth *Auth
		if auth, err = NewAuth(peerauth.Credentials{Key: []byte(strings.Repeat("k", 32))}, p.Plain); err != nil {
			os.Exit(1)
		}
		err = Run(ctx, p, auth, slog.New(slog.DiscardHandler), func() { os.Stdout.WriteString(".") })
	}
	if err != nil {
		slog.Error("agent", "error", err)
		os.Exit(1)
	}
}

// endAgent ends an agent.
func endAgent(t *testing.T, c *lab.Cmd) {
	t.Helper()
	if err := errors.Join(c.Process.Signal(os.Interrupt), c.Wait()); err != nil {
		t.Error(err)
	}
}

func do(t *testing.T, n *lab.Node, what func() error) {
	t.Helper()
	if err := n.Do(what); err != nil {
		t.Fatal(err)
	}
}
