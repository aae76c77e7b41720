package host

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/internal/cgroup2"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/relay"
)

// relayed is an entry and an exit without keep_source: a server sees the exit's address if a connection was carried.
//
//	entry == exit == server
type relayed struct {
	t                   *testing.T
	entry, exit, server *lab.Node
	address             netip.AddrPort // of the exit
	destination         netip.Prefix   // the server's network
	listeners           []net.Listener
	sees                chan netip.Addr
}

// newRelayed has a server that listens on ports, and answers what it gets.
func newRelayed(t *testing.T, ipv6 bool, delay time.Duration, ports ...uint16) *relayed {
	labtest.NeedRoot(t)
	l := labtest.Up(t, &lab.Topology{
		Nodes: []lab.NodeSpec{{Name: "entry"}, {Name: "exit", Router: true}, {Name: "server"}},
		Links: []lab.LinkSpec{{Ends: [2]string{"entry", "exit"}, Forward: lab.Path{Spec: link.Spec{Delay: delay}}}, {Ends: [2]string{"exit", "server"}}},
	})
	r := &relayed{t: t, entry: l.Node("entry"), exit: l.Node("exit"), server: l.Node("server"), sees: make(chan netip.Addr, 10)}
	at := func(n *lab.Node) netip.Addr {
		a, err := n.Addr(ipv6)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	r.address = netip.AddrPortFrom(at(r.exit), 8424)
	bits := 24
	if ipv6 {
		bits = 64
	}
	r.destination, _ = at(r.server).Prefix(bits)
	for _, port := range ports {
		do(t, r.server, func() error {
			one, err := net.Listen("tcp", netip.AddrPortFrom(at(r.server), port).String())
			r.listeners = append(r.listeners, one)
			return err
		})
		one := r.listeners[len(r.listeners)-1]
		t.Cleanup(func() { one.Close() })
		go func() {
			for {
				c, err := one.Accept()
				if err != nil {
					return
				}
				r.sees <- addrPort(c.RemoteAddr()).Addr()
				go func() {
					defer c.Close()
					io.Copy(c, c)
				}()
			}
		}()
	}
	return r
}

// open opens a connection of the entry's host to the server's nth port, and reports whether it is carried.
func (r *relayed) open(n int) (c net.Conn, carried bool) {
	r.t.Helper()
	do(r.t, r.entry, func() (err error) {
		c, err = net.DialTimeout("tcp", r.listeners[n].Addr().String(), 5*time.Second)
		return err
	})
	r.t.Cleanup(func() { c.Close() })
	r.say(c)
	select {
	case from := <-r.sees:
		return c, from != addrPort(c.LocalAddr()).Addr()
	case <-time.After(5 * time.Second):
		r.t.Fatal("the server sees no connection")
	}
	return nil, false
}

// say checks that a connection carries data in both directions.
func (r *relayed) say(c net.Conn) {
	r.t.Helper()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(c, "hello")
	got := make([]byte, 5)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "hello" {
		r.t.Errorf("read %q, %v", got, err)
	}
}

// rules returns the rules of nftables at the entry.
func (r *relayed) rules() string {
	return labtest.Run(r.t, r.entry, "nft", "list", "ruleset")
}

// exits returns the entry's exits.
func (r *relayed) exits() []relay.Exit {
	return []relay.Exit{{Address: r.address, Destinations: []netip.Prefix{r.destination}, Paths: []relay.Path{{Name: "any", Streams: 2}}}}
}

// accept is the policy of the exit.
func (r *relayed) accept() relay.Policy {
	return relay.Policy{Name: "exit", Accept: relay.Accept{Listen: r.address.String(), Destinations: []netip.Prefix{r.destination}}}
}

// Only connections of processes in the cgroup of a rule are carried, also after the cgroup was created again. A connection
// stays on the way that it began with.
func TestTakeCgroup(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("IPv6 %v", ipv6), func(t *testing.T) { testTakeCgroup(t, ipv6) })
	}
}

func testTakeCgroup(t *testing.T, ipv6 bool) {
	mount, err := cgroup2.Mount()
	if err != nil {
		t.Skip(err)
	}
	r := newRelayed(t, ipv6, 0, 7)
	parent := filepath.Base(labtest.Cgroup(t))
	outside := filepath.Join(mount, parent)
	name := "/" + parent + "/backup.service"
	inside := filepath.Join(mount, name)
	defer endAgent(t, startAgent(t, r.exit, r.accept()))
	defer endAgent(t, startAgent(t, r.entry, relay.Policy{Name: "entry", Exits: r.exits(), Take: []relay.Rule{{Cgroup: name}}}))
	direct, carried := r.open(0)
	if carried {
		t.Error("a connection is carried while the cgroup does not exist")
	}
	for range 2 { // created again, it has another id
		if err := os.Mkdir(inside, 0o755); err != nil {
			t.Fatal(err)
		}
		until(t, "the rule is loaded", func() bool { return strings.Contains(r.rules(), "cgroupv2") })
		if _, carried := r.open(0); carried {
			t.Error("a connection of another cgroup is carried")
		}
		labtest.Enter(t, inside)
		taken, carried := r.open(0)
		if !carried {
			t.Error("a connection of the cgroup is not carried")
		}
		labtest.Enter(t, outside)
		if err := os.Remove(inside); err != nil {
			t.Fatal(err)
		}
		until(t, "the rule is left out", func() bool { return !strings.Contains(r.rules(), "cgroupv2") })
		r.say(taken)
		r.say(direct)
	}
}

// A missing cgroup is logged once, and again when it is missing again.
func TestMissingCgroup(t *testing.T) {
	var log safeBuffer
	rules := newTakeRules(relay.Policy{Take: []relay.Rule{{Cgroup: "/there-is-no-such-cgroup"}, {}}}, nil, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		if all := rules.now(); len(all) != 2 || all[0].cgroup != nil {
			t.Errorf("rules %+v", all)
		}
	}
	if lines := strings.Count(log.String(), "left out until its cgroup exists"); lines != 1 {
		t.Errorf("%d lines are logged:\n%s", lines, log.String())
	}
}

// at is an exit with a round-trip time, and an open stream if that is not 0.
type at struct {
	carrier
	rtt time.Duration
}

func (a *at) RTT() time.Duration { return a.rtt }

func (a *at) Streams() int { return min(int(a.rtt), 1) }

// A rule takes connections to exits that are far enough, until they are at 80 % of that. An exit that is near keeps the
// part of another exit's destinations that is its own.
func TestTakeMinRTT(t *testing.T) {
	whole, part := netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("10.128.0.0/9")
	far, near := &at{}, &at{rtt: 5 * time.Millisecond}
	rules := newTakeRules(relay.Policy{
		Exits: []relay.Exit{{Destinations: []netip.Prefix{whole}}, {Destinations: []netip.Prefix{part}}},
		Take:  []relay.Rule{{MinRTT: 20 * time.Millisecond}, {}},
	}, []carrier{far, near}, slog.Default())
	for _, step := range []struct {
		rtt  time.Duration
		want string
	}{{19, "[]"}, {20, "[10.0.0.0/9]"}, {17, "[10.0.0.0/9]"}, {15, "[]"}, {17, "[]"}, {40, "[10.0.0.0/9]"}, {0, "[]"}, {17, "[]"}} {
		far.rtt = step.rtt * time.Millisecond
		all := rules.now()
		if got := fmt.Sprint(all[0].destinations); got != step.want {
			t.Errorf("at %v: %s, want %s", far.rtt, got, step.want)
		}
		any := "[10.0.0.0/8 10.128.0.0/9]"
		if far.rtt == 0 {
			any = "[10.128.0.0/9]"
		}
		if got := fmt.Sprint(all[1].destinations); got != any {
			t.Errorf("at %v, any: %s, want %s", far.rtt, got, any)
		}
	}
}

// Only the rule whose round-trip time the path has takes connections.
func TestTakeMinRTTOfPath(t *testing.T) {
	r := newRelayed(t, false, 30*time.Millisecond, 7, 8)
	defer endAgent(t, startAgent(t, r.exit, r.accept()))
	rule := func(port uint16, rtt time.Duration) relay.Rule {
		return relay.Rule{Ports: []relay.Ports{{From: port, To: port}}, MinRTT: rtt}
	}
	defer endAgent(t, startAgent(t, r.entry, relay.Policy{Name: "entry", Exits: r.exits(), Take: []relay.Rule{rule(7, 20*time.Millisecond), rule(8, time.Second)}}))
	until(t, "a rule is loaded", func() bool { return strings.Contains(r.rules(), "tproxy") })
	for n, want := range []bool{true, false} {
		if _, carried := r.open(n); carried != want {
			t.Errorf("port %d: carried %v, want %v", n+7, carried, want)
		}
	}
}
