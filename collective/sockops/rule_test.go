package sockops_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
)

// The kernel adds the connections that match a rule, and no others: by port and by
// prefix, of IPv4 and IPv6, and of either end; open connections and new ones. Every flow
// has two ends in the cgroup.
func TestRules(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := labtest.Cgroup(t)
	l := rig(t)
	addr := func(name string, ipv6 bool) netip.Addr {
		a, err := l.Node(name).Addr(ipv6)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	host := func(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
	var flows []traffic.Flow
	for i, ipv6 := range []bool{false, true} {
		for _, port := range []uint16{5001, 5002} {
			flows = append(flows, traffic.Flow{Name: string(rune('a' + 2*i + int(port-5001))), From: "server", To: "client", Protocol: traffic.TCP, DstPort: port, IPv6: ipv6})
		}
	}
	begin := func() *traffic.Session {
		s, err := traffic.Start(t.Context(), l.Host, flows, traffic.Options{Duration: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	server, server6 := addr("server", false), addr("server", true)
	for _, c := range []struct {
		what  string
		rules []collective.Rule
		ends  int // of the eight
	}{
		{"no rule", nil, 8},
		{"a port of the other end", []collective.Rule{{RemotePort: collective.Ports{From: 5001, To: 5001}}}, 2},
		{"ports of the own end", []collective.Rule{{LocalPort: collective.Ports{From: 5001, To: 5002}}}, 4},
		{"an IPv4 address", []collective.Rule{{Local: host(server)}}, 2},
		{"an IPv6 address", []collective.Rule{{Local: host(server6)}}, 2},
		{"both ends and a port", []collective.Rule{{Local: host(server6), Remote: host(addr("client", true)), RemotePort: collective.Ports{From: 5002, To: 5002}}}, 1},
		{"a prefix with all of IPv4", []collective.Rule{{Remote: netip.MustParsePrefix("0.0.0.0/0")}}, 4},
		{"one of two rules", []collective.Rule{{Local: host(server)}, {RemotePort: collective.Ports{From: 5002, To: 5002}}}, 3},
		{"another port", []collective.Rule{{RemotePort: collective.Ports{From: 5003, To: 6000}}}, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			tab := open(t, 64)
			defer func() {
				if err := tab.Remove(); err != nil {
					t.Error(err)
				}
				tab.Close()
			}()
			set := sockops.Set{Cgroup: below(cgroup), Rules: c.rules}
			before := begin()
			if err := errors.Join(tab.Attach(set), tab.Join(set)); err != nil {
				t.Fatal(err)
			}
			if all := slices.Collect(tab.Connections()); len(all) != c.ends {
				t.Errorf("%d ends that were open are in the table, want %d", len(all), c.ends)
			}
			before.Stop()
			before.Wait()
			for end := time.Now().Add(5 * time.Second); len(slices.Collect(tab.Connections())) > 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("ends that were open are in the table after they closed")
				}
			}
			s := begin()
			defer func() { s.Stop(); s.Wait() }()
			all := slices.Collect(tab.Connections())
			if len(all) != c.ends {
				t.Errorf("%d ends are in the table, want %d", len(all), c.ends)
			}
			for _, v := range all {
				holds := len(c.rules) == 0 || slices.ContainsFunc(c.rules, func(r collective.Rule) bool { return r.Matches(v.Local, v.Remote) })
				if !holds {
					t.Errorf("%v to %v is in the table, but matches no rule", v.Local, v.Remote)
				}
			}
		})
	}
}

// A connection that was already open is read like any other: its round trips and its
// acknowledged bytes.
func TestJoin(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := labtest.Cgroup(t)
	l := rig(t)
	s := start(t, l, 1, 10*time.Second, "cubic")
	defer func() { s.Stop(); s.Wait() }()
	time.Sleep(time.Second)
	tab := table(t, cgroup, 64)
	if err := tab.Join(sockops.Set{Number: 7, Cgroup: below(cgroup)}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	all := sending(tab)
	if len(all) != 2 {
		t.Fatalf("%d ends are in the table, want both (it is unknown which end opened a connection that was already open)", len(all))
	}
	var sender *sockops.Connection
	for _, c := range all {
		if sender == nil || c.Acked > sender.Acked {
			sender = c
		}
	}
	if sender.Rounds < 5 || sender.RTT < 15*time.Millisecond || sender.Acked < 4e6 || sender.Newest < 15*time.Millisecond {
		t.Errorf("state after a second is %+v", sender)
	}
}

// Look reports each change of a connection once, and its end.
func TestLook(t *testing.T) {
	labtest.NeedRoot(t)
	tab := table(t, labtest.Cgroup(t), 64)
	l := rig(t)
	s := start(t, l, 1, 3*time.Second, "cubic")
	told, ended := map[collective.ID]int{}, map[collective.ID]bool{}
	look := func() {
		tab.Look(func(c *sockops.Connection) { told[c.ID]++ }, func(e sockops.Ended) {
			if e.Set != 7 {
				t.Errorf("connection %d was of set %d, want 7", e.ID, e.Set)
			}
			ended[e.ID] = true
		})
	}
	for range 100 {
		look()
		time.Sleep(10 * time.Millisecond)
	}
	if len(told) != 2 {
		t.Fatalf("Look reports %d ends, want 2", len(told))
	}
	for id, n := range told {
		// The sender changes each round trip of 20 ms or more, the receiver never does.
		if n > 60 {
			t.Errorf("Look reports end %d %d times in 50 round trips", id, n)
		}
	}
	s.Stop()
	s.Wait()
	time.Sleep(100 * time.Millisecond)
	look()
	if len(ended) != 2 {
		t.Errorf("Look reports the end of %d, want 2", len(ended))
	}
}

// Each of many short connections is reported once when it ends, with what it carried, however few looks there are and however often a slot is used.
func TestLookShort(t *testing.T) {
	labtest.NeedRoot(t)
	tab := table(t, labtest.Cgroup(t), 2)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended := map[collective.ID]sockops.Ended{}
	look := func() {
		tab.Look(func(*sockops.Connection) {}, func(e sockops.Ended) {
			if _, twice := ended[e.ID]; twice {
				t.Errorf("the end of %d is reported twice", e.ID)
			}
			ended[e.ID] = e
		})
	}
	const connections, size = 50, 10_000
	for i := range connections {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		d, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		c.Close()
		if n, err := io.Copy(io.Discard, d); n != size || err != nil {
			t.Fatal(n, err)
		}
		d.Close()
		if i%10 == 0 {
			look()
		}
		for free := time.Now().Add(time.Second); len(slices.Collect(tab.Connections())) > 0 && time.Now().Before(free); {
			time.Sleep(time.Millisecond)
		}
	}
	look()
	sent := 0
	for _, e := range ended {
		if e.Passive {
			continue
		}
		if sent++; !e.Complete || e.Acked < size || e.Acked > size+2 || e.Remote.String() != l.Addr().String() { // SYN and FIN count
			t.Errorf("%+v", e)
		}
	}
	if sent != connections {
		t.Errorf("the ends of %d connections are reported, want %d", sent, connections)
	}
}
