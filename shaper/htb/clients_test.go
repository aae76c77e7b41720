package htb_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// Tests with clients at several addresses behind the rig's client:
//
//	server == router == client (10.99.0.N and fd99:N::1 on lo)
//
// The server's device is shaped; out is towards the clients, in is from them.

// clientRig returns the rig with this number of clients per IP version.
func clientRig(t testing.TB, many int) *lab.Lab {
	l := labtest.Rig(t, lab.RigOptions{})
	client := l.Node("client")
	for i := 1; i <= many; i++ {
		labtest.Run(t, client, "ip", "address", "add", fmt.Sprintf("10.99.0.%d/32", i), "dev", "lo")
		labtest.Run(t, client, "ip", "address", "add", fmt.Sprintf("fd99:%x::1/128", i), "dev", "lo", "nodad")
	}
	for _, ipv6 := range []bool{false, true} {
		to, err := client.Addr(ipv6)
		if err != nil {
			t.Fatal(err)
		}
		network, version := "10.99.0.0/16", "-4"
		if ipv6 {
			network, version = "fd99::/16", "-6"
		}
		for _, name := range []string{"server", "router"} {
			fields := strings.Fields(labtest.Run(t, l.Node(name), "ip", version, "route", "get", to.String()))
			via := to.String()
			if at := slices.Index(fields, "via"); at >= 0 {
				via = fields[at+1]
			}
			labtest.Run(t, l.Node(name), "ip", version, "route", "add", network, "via", via)
		}
	}
	return l
}

// stream is the traffic from one address to another in full frames until ctx ends: datagrams at
// a rate, or TCP. It counts received layer-2 bytes.
type stream struct{ bytes atomic.Int64 }

// tcp sends at the rate of the connection.
func (s *stream) tcp(t testing.TB, ctx context.Context, from, to *lab.Node, src, dst netip.Addr) {
	t.Helper()
	segment := 1514 - 66
	if dst.Is6() {
		segment -= 20
	}
	var listener net.Listener
	if err := to.Do(func() (err error) {
		listener, err = net.Listen("tcp", netip.AddrPortFrom(dst, 0).String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var out *net.TCPConn
	if err := from.Do(func() (err error) {
		out, err = net.DialTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(src, 0)), listener.Addr().(*net.TCPAddr))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	in, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, func() { in.Close(); out.Close() })
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := in.Read(buf)
			if err != nil {
				return
			}
			s.bytes.Add(int64(n * 1514 / segment))
		}
	}()
	go func() {
		buf := make([]byte, 1<<16)
		for err := error(nil); err == nil; {
			_, err = out.Write(buf)
		}
	}()
}

func (s *stream) run(t testing.TB, ctx context.Context, from, to *lab.Node, src, dst netip.Addr, rate unit.Rate) {
	t.Helper()
	headers := 42
	if dst.Is6() {
		headers = 62
	}
	payload := 1514 - headers
	var in *net.UDPConn
	if err := to.Do(func() (err error) {
		in, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(dst, 0)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	at := in.LocalAddr().(*net.UDPAddr).AddrPort()
	var out *net.UDPConn
	if err := from.Do(func() (err error) {
		out, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(src, 0)), net.UDPAddrFromAddrPort(at))
		return err
	}); err != nil {
		in.Close()
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 2048)
		for {
			n, err := in.Read(buf)
			if err != nil {
				return
			}
			s.bytes.Add(int64(n + headers))
		}
	}()
	go func() {
		defer in.Close()
		defer out.Close()
		buf := make([]byte, payload)
		every := time.Duration(1514 * 8 / float64(rate) * 1e9)
		for next := time.Now(); ctx.Err() == nil; next = next.Add(every) {
			if late := time.Since(next); late > 20*time.Millisecond {
				next = next.Add(late) // datagrams that the socket did not accept in time are not sent later
			}
			time.Sleep(time.Until(next))
			_, _ = out.Write(buf)
		}
		time.Sleep(200 * time.Millisecond)
	}()
}

func rates(over time.Duration, list []*stream) (got []float64) {
	before := make([]int64, len(list))
	for i, s := range list {
		before[i] = s.bytes.Load()
	}
	began := time.Now()
	time.Sleep(over)
	took := time.Since(began).Seconds()
	for i, s := range list {
		got = append(got, float64(s.bytes.Load()-before[i])*8/took/1e6)
	}
	return got
}

func eachTree(t testing.TB, d group.Direction, name string) *group.Tree {
	t.Helper()
	tree, problems := d.Resolve(name, name == "out")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return &tree
}

func client4(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 99, 0, byte(i)}) }

func client6(i int) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf("fd99:%x::1", i))
}

func rate(r unit.Rate) group.Amount { return group.Amount{Rate: r} }

// TestClientsShare: clients of a group divide it equally and obey their ceilings, as one after
// the other becomes active. The number of a client's connections does not matter. The test
// covers both directions, both IP versions, and a group at the second level.
func TestClientsShare(t *testing.T) {
	labtest.NeedRoot(t)
	const limit = 20 * unit.Mbit
	each := group.Each{Dst: true, IPv4: 32, IPv6: 64}
	users := group.Group{Name: "users", Guarantee: rate(unit.Mbit), Ceiling: rate(12 * unit.Mbit), Each: each, Clients: 16, Default: true}
	for _, c := range []struct {
		name   string
		in     bool
		inside bool // inside another group
	}{{"out", false, false}, {"in", true, false}, {"inside another group", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			labtest.Try(t, func(t *labtest.Check) {
				l := clientRig(t, 4)
				server, client, e := l.Node("server"), l.Node("client"), htb.New()
				mine := users
				if c.in {
					mine.Each.Dst = false
				}
				groups := []group.Group{mine}
				if c.inside {
					groups = []group.Group{{Name: "tenant", Guarantee: rate(limit), Groups: []group.Group{mine}}}
				}
				d := group.Direction{Limit: limit, Groups: groups}
				plan := shaper.Plan{Dev: "router", Perspective: group.Host}
				if c.in {
					plan.In = eachTree(t, d, "in")
				} else {
					plan.Out = eachTree(t, d, "out")
				}
				if err := server.Do(func() error { _, err := e.Apply(plan); return err }); err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				start := func(addr netip.Addr, of unit.Rate) *stream {
					s := &stream{}
					own, err := server.Addr(addr.Is6())
					if err != nil {
						t.Fatal(err)
					}
					if c.in {
						s.tcp(t, ctx, client, server, addr, own)
					} else {
						s.run(t, ctx, server, client, own, addr, of)
					}
					return s
				}
				near := func(what string, got []float64, want ...float64) {
					t.Helper()
					for i := range want {
						if got[i] < want[i]*0.93 || got[i] > want[i]*1.05 {
							t.Errorf("%s: %.2f Mbit/s, want %.2f", what, got, want)
							return
						}
					}
				}
				settle := time.Second
				if c.in { // what TCP loses when it begins arrives late, and what came after it is counted then
					settle = 3 * time.Second
				}
				time.Sleep(300 * time.Millisecond)
				a := start(client4(1), 15*unit.Mbit)
				time.Sleep(settle)
				near("one client gets its ceiling", rates(time.Second, []*stream{a}), 12)
				a2 := start(client4(1), 15*unit.Mbit) // of the same client
				b := start(client4(2), 15*unit.Mbit)
				time.Sleep(settle)
				got := rates(2*time.Second, []*stream{a, a2, b})
				near("two clients get halves, whatever the number of connections", []float64{got[0] + got[1], got[2]}, 10, 10)
				v6 := start(client6(3), 15*unit.Mbit)
				time.Sleep(settle)
				got = rates(2*time.Second, []*stream{a, a2, b, v6})
				near("three clients get thirds, also with IPv6", []float64{got[0] + got[1], got[2], got[3]}, 6.67, 6.67, 6.67)
				var st shaper.State
				var clients []shaper.Client
				if err := server.Do(func() (err error) {
					if st, err = e.Observe("router"); err == nil {
						clients, err = e.Clients("router")
					}
					return err
				}); err != nil {
					t.Fatal(err)
				}
				dir := st.Out
				if c.in {
					dir = st.In
				}
				g := dir.Groups[len(dir.Groups)-1]
				// The fourth client is that of packets without an address, if the hosts sent
				// ARP requests.
				if g.Clients == nil || g.Clients.Active < 3 || g.Clients.Active > 6 || g.Bytes < 10_000_000 {
					t.Errorf("the group has %+v and %d bytes", g.Clients, g.Bytes)
				}
				found := 0
				for _, one := range clients {
					switch one.Client.String() {
					case "10.99.0.1/32", "10.99.0.2/32", "fd99:3::/64":
						if found++; one.Bytes < 1_500_000 || one.Passed < 1_000_000 {
							t.Errorf("%+v", one)
						}
					}
				}
				if found != 3 {
					t.Errorf("clients %+v", clients)
				}
				if len(st.Drift) > 0 {
					t.Errorf("drift %v", st.Drift)
				}
			})
		})
	}
}

// TestClientPlaces: with more clients than places, active clients keep their places, an idle
// client loses its place to a new one, and an apply changes no places.
func TestClientPlaces(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := clientRig(t, 4)
		server, client, e := l.Node("server"), l.Node("client"), htb.New()
		users := group.Group{Name: "users", Each: group.Each{Dst: true, IPv4: 32, IPv6: 64}, Clients: 3, Ceiling: rate(2 * unit.Mbit), Match: []group.Selector{{Dst: []netip.Prefix{netip.MustParsePrefix("10.99.0.0/16")}}}}
		plan := func(ceiling unit.Rate, more ...group.Group) shaper.Plan {
			users.Ceiling = rate(ceiling)
			return shaper.Plan{Dev: "router", Perspective: group.Host, Out: eachTree(t, group.Direction{
				Limit: 20 * unit.Mbit, Groups: append([]group.Group{users, {Name: "rest", Default: true}}, more...)}, "out")}
		}
		apply := func(p shaper.Plan) (changes []shaper.Change) {
			t.Helper()
			if err := server.Do(func() (err error) { changes, err = e.Apply(p); return err }); err != nil {
				t.Fatal(err)
			}
			return changes
		}
		list := func() map[string]string {
			t.Helper()
			var clients []shaper.Client
			if err := server.Do(func() (err error) { clients, err = e.Clients("router"); return err }); err != nil {
				t.Fatal(err)
			}
			out := map[string]string{}
			for _, c := range clients {
				out[c.Client.Addr().String()] = c.Class
			}
			return out
		}
		apply(plan(2 * unit.Mbit))
		own, err := server.Addr(false)
		if err != nil {
			t.Fatal(err)
		}
		var stop [5]context.CancelFunc
		start := func(i int) *stream {
			ctx, cancel := context.WithCancel(t.Context())
			stop[i] = cancel
			s := &stream{}
			s.run(t, ctx, server, client, own, client4(i), 4*unit.Mbit)
			return s
		}
		defer func() {
			for _, cancel := range stop {
				if cancel != nil {
					cancel()
				}
			}
		}()
		one, two, three := start(1), start(2), start(3)
		time.Sleep(time.Second)
		first := list()
		if len(first) != 3 {
			t.Fatalf("places of three clients: %v", first)
		}
		for _, p := range []shaper.Plan{
			plan(2 * unit.Mbit), plan(3 * unit.Mbit), // another ceiling, and then another rule
			plan(2*unit.Mbit, group.Group{Name: "more", Match: []group.Selector{{Proto: []uint8{group.TCP}}}}),
		} {
			changes := apply(p)
			if now := list(); fmt.Sprint(now) != fmt.Sprint(first) {
				t.Errorf("after %v: %v, want %v", changes, now, first)
			}
		}
		apply(plan(2 * unit.Mbit))
		// The fourth client shares the place of another client.
		four := start(4)
		time.Sleep(time.Second)
		got := rates(time.Second, []*stream{one, two, three, four})
		if sum := got[0] + got[1] + got[2] + got[3]; got[3] < 0.3 || sum > 6.3 || sum < 5.5 {
			t.Errorf("a fourth client among three places of 2 Mbit/s: %.2f", got)
		}
		if now := list(); fmt.Sprint(now) != fmt.Sprint(first) {
			t.Errorf("with a fourth client: %v, want %v", now, first)
		}
		stop[2]()
		time.Sleep((group.ClientIdle + 1) * time.Second)
		now := list()
		if now["10.99.0.4"] != first["10.99.0.2"] || now["10.99.0.2"] != "" || now["10.99.0.1"] != first["10.99.0.1"] {
			t.Errorf("after the second client was idle: %v, before %v", now, first)
		}
		got = rates(time.Second, []*stream{one, three, four})
		for _, r := range got {
			if r < 1.8 || r > 2.1 {
				t.Errorf("want the ceiling of 2 Mbit/s for each: %.2f", got)
				break
			}
		}
	})
}

// TestClientsMatchShare: active clients and another group get the rates that package share
// computes.
func TestClientsMatchShare(t *testing.T) {
	labtest.NeedRoot(t)
	const limit = 20 * unit.Mbit
	labtest.Try(t, func(t *labtest.Check) {
		l := clientRig(t, 4)
		server, client, e := l.Node("server"), l.Node("client"), htb.New()
		tree := eachTree(t, group.Direction{Limit: limit, Groups: []group.Group{
			{Name: "users", Guarantee: rate(2 * unit.Mbit), Ceiling: rate(5 * unit.Mbit), Each: group.Each{Dst: true, IPv4: 32, IPv6: 64}, Clients: 64,
				Match: []group.Selector{{Dst: []netip.Prefix{netip.MustParsePrefix("10.99.0.0/16"), netip.MustParsePrefix("fd99::/16")}}}},
			{Name: "rest", Guarantee: rate(8 * unit.Mbit), Default: true},
		}}, "out")
		if got := tree.Nodes[0].Guarantee; got != 12*unit.Mbit {
			t.Fatalf("the guarantee of all clients is %v, want 12 Mbit/s, the rest of the sibling group", got)
		}
		if err := server.Do(func() error {
			_, err := e.Apply(shaper.Plan{Dev: "router", Perspective: group.Host, Out: tree})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		offered := []unit.Rate{15 * unit.Mbit, 15 * unit.Mbit, unit.Mbit, 15 * unit.Mbit} // of four clients
		var list []*stream
		run := func(dst netip.Addr, of unit.Rate) {
			s := &stream{}
			own, err := server.Addr(dst.Is6())
			if err != nil {
				t.Fatal(err)
			}
			s.run(t, ctx, server, client, own, dst, of)
			list = append(list, s)
		}
		for i, of := range offered {
			if i == 3 {
				run(client6(i+1), of)
			} else {
				run(client4(i+1), of)
			}
		}
		beside, err := client.Addr(false)
		if err != nil {
			t.Fatal(err)
		}
		run(beside, 18*unit.Mbit)
		users, rest := tree.Nodes[0], tree.Nodes[1]
		claims := []share.Claim{
			{Parent: -1, Guarantee: users.Guarantee, Ceiling: users.Ceiling, Weight: uint64(tree.Weight(users))},
			{Parent: -1, Guarantee: rest.Guarantee, Ceiling: rest.Ceiling, Weight: uint64(tree.Weight(rest)), Demand: 18 * unit.Mbit},
		}
		for _, of := range offered {
			claims = append(claims, share.Claim{Parent: 0, Guarantee: users.Clients.Guarantee, Ceiling: users.Clients.Ceiling, Weight: 1, Demand: of})
		}
		answer := share.Allocate(limit, share.Proportional, claims)
		want := append(answer[2:], answer[1])
		time.Sleep(time.Second)
		got := rates(4*time.Second, list)
		for i, w := range want {
			if r := float64(w) / 1e6; got[i] < r*0.95 || got[i] > r*1.05 {
				t.Errorf("rates %.2f Mbit/s, want %v by package share", got, want)
				break
			}
		}
	})
}

// TestClientsComeAndGo: groups with clients are added, grown, shrunk, removed and converted.
// Each apply leads to the desired state, a second apply changes nothing, and packets pass all
// the time.
func TestClientsComeAndGo(t *testing.T) {
	labtest.NeedRoot(t)
	l := labtest.Rig(t, lab.RigOptions{})
	server, e := l.Node("server"), htb.New()
	each := func(name string, clients int) group.Group {
		return group.Group{Name: name, Each: group.Each{IPv4: 32, IPv6: 64}, Clients: clients}
	}
	plain := func(name string, in ...group.Group) group.Group { return group.Group{Name: name, Groups: in} }
	to, err := l.Node("client").Addr(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		groups []group.Group
	}{
		{"two", []group.Group{each("a", 30), each("b", 40)}},
		{"one grows where the other was", []group.Group{each("a", 60), each("b", 40)}},
		{"both shrink", []group.Group{each("a", 10), each("b", 4)}},
		{"one becomes a plain group", []group.Group{plain("a"), each("b", 4)}},
		{"the other becomes a parent group", []group.Group{each("a", 10), plain("b", plain("x"), each("y", 20))}},
		{"its child with clients becomes a plain group", []group.Group{each("a", 10), plain("b", plain("x"), plain("y"))}},
		{"none", []group.Group{plain("c")}},
		{"the maximum", []group.Group{each("a", 10000), each("b", 5900)}},
		{"other names", []group.Group{each("c", 10000), each("d", 6000)}},
	} {
		if os.Getenv("HEADGATE_VM") != "" && c.groups[0].Clients > 1000 {
			continue // an emulated processor takes minutes
		}
		groups := append(slices.Clone(c.groups), group.Group{Name: "rest", Default: true})
		groups[0].Default, groups[len(groups)-1].Default = groups[0].Groups == nil, groups[0].Groups != nil
		tree := eachTree(t, group.Direction{Limit: 20 * unit.Mbit, Groups: groups}, "out")
		plan := shaper.Plan{Dev: "router", Perspective: group.Host, Out: tree}
		if err := server.Do(func() error {
			began := time.Now()
			changes, err := e.Apply(plan)
			if err != nil {
				return err
			}
			if len(changes) == 0 || len(changes) > 30 {
				t.Errorf("%s: %d changes", c.what, len(changes))
			}
			took := time.Since(began)
			began = time.Now()
			again, err := e.Diff(plan)
			if err == nil && len(again) > 0 {
				t.Errorf("%s: changes left after the apply: %v", c.what, again)
			}
			if tree.Nodes[0].Clients.Most > 1000 {
				t.Logf("%s: apply %.1f s, diff %.2f s", c.what, took.Seconds(), time.Since(began).Seconds())
			}
			return err
		}); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		labtest.Run(t, server, "ping", "-c", "1", "-W", "2", to.String())
	}
	if err := server.Do(func() error { return e.Clear("router") }); err != nil {
		t.Fatal(err)
	}
}
