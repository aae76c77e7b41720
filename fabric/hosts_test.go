package fabric

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	edge1, edge2, edge3 = PortID{1, 10}, PortID{2, 10}, PortID{3, 10}
	ip1, ip2            = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
)

func host(i byte) HostID { return HostID{MAC: MAC{2, 0, 0, 0, 0, i}} }

// hostScript runs a learner with a silence of 200 ms and an expiry of 10 s, which keeps 3 hosts at a port, 5 in total and
// 2 addresses of each.
type hostScript struct {
	t *testing.T
	*HostLearner
}

func newHostScript(t *testing.T) hostScript {
	return hostScript{t, NewHostLearner(HostRules{200 * time.Millisecond, 10 * time.Second, 3, 5, 2}, short)}
}

// see observes a host by ARP.
func (s hostScript) see(id HostID, p PortID, ms int, addrs ...netip.Addr) (bool, []Event) {
	return s.Observe(Sighting{id, addrs, p, FromARP}, at(ms))
}

// accepted and refused observe a host and check the events.
func (s hostScript) accepted(id HostID, p PortID, ms int, addrs []netip.Addr, want ...string) {
	s.t.Helper()
	s.check(true, id, p, ms, addrs, want)
}

func (s hostScript) refused(id HostID, p PortID, ms int, addrs []netip.Addr, want ...string) {
	s.t.Helper()
	s.check(false, id, p, ms, addrs, want)
}

func (s hostScript) check(wantOK bool, id HostID, p PortID, ms int, addrs []netip.Addr, want []string) {
	s.t.Helper()
	ok, events := s.see(id, p, ms, addrs...)
	if got := texts(events); ok != wantOK || !slices.Equal(got, want) {
		s.t.Errorf("got %v %q, want %v %q", ok, got, wantOK, want)
	}
}

func (s hostScript) want(events []Event, want ...string) {
	s.t.Helper()
	if got := texts(events); !slices.Equal(got, want) {
		s.t.Errorf("got %q, want %q", got, want)
	}
}

func (s hostScript) wantAt(id HostID, p PortID, addrs ...netip.Addr) {
	s.t.Helper()
	for _, h := range s.Hosts() {
		if h.HostID == id {
			if h.At != p || !slices.Equal(h.Addrs, addrs) {
				s.t.Errorf("host %v is at %v with %v, want %v and %v", id, h.At, h.Addrs, p, addrs)
			}
			return
		}
	}
	s.t.Errorf("host %v is not known", id)
}

func TestHostIsLearned(t *testing.T) {
	s := newHostScript(t)
	s.accepted(host(1), edge1, 0, []netip.Addr{ip1}, "host-added: host 02:00:00:00:00:01 is at s1/10", "host-changed: host 02:00:00:00:00:01 has the address 10.0.0.1")
	s.accepted(host(1), edge1, 10, []netip.Addr{ip1})
	s.wantAt(host(1), edge1, ip1)
	for _, a := range []string{"0.0.0.0", "224.0.0.1", "127.0.0.1", "::", "ff02::1", "255.255.255.255"} {
		s.accepted(host(1), edge1, 20, []netip.Addr{netip.MustParseAddr(a)})
	}
	s.accepted(host(1), edge1, 30, []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1")})
	s.wantAt(host(1), edge1, ip1)
	s.refused(HostID{MAC: MAC{1}}, edge1, 40, nil)
	s.refused(HostID{}, edge1, 40, nil)
	s.refused(HostID{MAC: MAC{2}, VLAN: 4095}, edge1, 40, nil)
	if n := len(s.Hosts()); n != 1 {
		t.Errorf("%d hosts", n)
	}
}

func TestHostLearnedBy(t *testing.T) {
	s := newHostScript(t)
	for i, by := range []Learned{FromPacket, FromNDP, FromARP, FromDHCP, FromConfiguration} {
		s.Observe(Sighting{host(1), nil, edge1, by}, at(i))
		want := []Learned{FromPacket, FromNDP, FromNDP, FromDHCP, FromDHCP}[i]
		if got := s.Hosts()[0].Learned; got != want {
			t.Errorf("after %v: learned by %v, want %v", by, got, want)
		}
	}
}

// A host that answers at its port does not move, however often another port sends with its MAC.
func TestHostThatAnswersStays(t *testing.T) {
	s := newHostScript(t)
	s.see(host(1), edge1, 0)
	elsewhere := "host-elsewhere: host 02:00:00:00:00:01 is at s1/10, and was observed at s2/10"
	s.refused(host(1), edge2, 1000, nil, elsewhere)
	s.refused(host(1), edge2, 1050, nil)
	s.accepted(host(1), edge1, 1100, nil, "host-stayed: host 02:00:00:00:00:01 answers at s1/10: a frame with its MAC at s2/10 was not its own")
	s.refused(host(1), edge2, 1250, nil, elsewhere)
	s.accepted(host(1), edge1, 1300, nil) // reported a moment ago
	s.want(s.Expire(at(2000)))
	s.wantAt(host(1), edge1)
}

// A host that is silent at its port moves, by the next frame at the new port or by time alone.
func TestHostMoves(t *testing.T) {
	s := newHostScript(t)
	s.see(host(1), edge1, 0, ip1)
	s.see(host(1), edge2, 1000)
	s.refused(host(1), edge3, 1100, nil) // a third port has no vote
	s.accepted(host(1), edge2, 1200, nil, "host-moved: host 02:00:00:00:00:01 moved from s1/10 to s2/10")
	s.wantAt(host(1), edge2, ip1)
	s.see(host(1), edge3, 2000)
	s.want(s.Expire(at(2199)))
	s.want(s.Expire(at(2200)), "host-moved: host 02:00:00:00:00:01 moved from s2/10 to s3/10")
	s.PortDown(edge3)
	s.accepted(host(1), edge1, 2201, nil, "host-moved: host 02:00:00:00:00:01 moved from s3/10 to s1/10")
	s.PortUp(edge3)
	s.see(host(1), edge3, 3000)
	s.PortDown(edge3)
	s.want(s.Expire(at(3300))) // the new port failed before the move
	s.wantAt(host(1), edge1, ip1)
}

func TestAddressOfTwoHosts(t *testing.T) {
	s := newHostScript(t)
	s.see(host(1), edge1, 0, ip1)
	s.see(host(2), edge2, 1)
	claimed := "address-claimed: address 10.0.0.1 belongs to host 02:00:00:00:00:01, and host 02:00:00:00:00:02 at s2/10 uses it too: give one of them another address"
	s.refused(host(2), edge2, 2, []netip.Addr{ip1}, claimed)
	s.refused(host(2), edge2, 3, []netip.Addr{ip1})
	s.wantAt(host(2), edge2)
	s.accepted(HostID{host(2).MAC, 7}, edge2, 4, []netip.Addr{ip1}, // another VLAN has other addresses
		"host-added: host 02:00:00:00:00:02 in VLAN 7 is at s2/10", "host-changed: host 02:00:00:00:00:02 in VLAN 7 has the address 10.0.0.1")
	s.PortDown(edge1)
	s.accepted(host(2), edge2, 5, []netip.Addr{ip1}, "host-changed: host 02:00:00:00:00:01 no longer has the address 10.0.0.1", "host-changed: host 02:00:00:00:00:02 has the address 10.0.0.1")
	s.wantAt(host(1), edge1)
	s.wantAt(host(2), edge2, ip1)
}

func TestHostExpires(t *testing.T) {
	s := newHostScript(t)
	s.see(host(1), edge1, 0, ip1)
	s.see(host(1), edge1, 5000, ip2)
	s.want(s.Expire(at(9000)))
	s.want(s.Expire(at(10_000)), "host-changed: host 02:00:00:00:00:01 no longer has the address 10.0.0.1")
	s.wantAt(host(1), edge1, ip2)
	s.want(s.Expire(at(15_000)), "host-removed: host 02:00:00:00:00:01 at s1/10 is expired")
	s.accepted(host(2), edge2, 15_001, []netip.Addr{ip2}, "host-added: host 02:00:00:00:00:02 is at s2/10", "host-changed: host 02:00:00:00:00:02 has the address 10.0.0.2")
}

// A host that was not observed for half the expiry is asked, once for each look at all hosts; one that answers stays.
func TestSilentHosts(t *testing.T) {
	s := newHostScript(t)
	s.Configure([]Host{{HostID: host(9), At: edge1, Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.9")}}}, at(0))
	s.see(host(1), edge1, 0, ip1)
	s.see(host(2), edge2, 0, ip2)
	s.see(host(3), edge2, 0) // has no address to be asked for
	silent := func(most, ms int, want ...HostID) {
		t.Helper()
		s.Expire(at(ms))
		var got []HostID
		for _, h := range s.Silent(most) {
			got = append(got, h.HostID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("at %d ms %v are silent, want %v", ms, got, want)
		}
	}
	silent(9, 4_800)
	silent(1, 5_000, host(1))
	silent(9, 5_001, host(2))
	silent(9, 5_002)
	s.see(host(1), edge1, 5_100, ip1)
	silent(9, 6_000, host(2))
	silent(9, 10_000)
	s.wantAt(host(1), edge1, ip1)
	if _, ok := s.Host(host(2)); ok {
		t.Error("a host that does not answer stays")
	}
}

func TestHostBounds(t *testing.T) {
	s := newHostScript(t)
	for i := range byte(3) {
		s.see(host(i), edge1, 0)
	}
	full := "host-limit: port s1/10 has 3 hosts, the maximum: further hosts there are not learned until one expires"
	s.refused(host(3), edge1, 1, nil, full)
	s.refused(host(4), edge1, 2, nil)
	s.see(host(5), edge2, 3)
	s.see(host(6), edge2, 4)
	s.refused(host(7), edge2, 5, nil, "host-limit: the network has 5 hosts, the maximum: further hosts are not learned until one expires; the last was at port s2/10")
	s.see(host(5), edge1, 100)
	s.refused(host(5), edge1, 300, nil) // no place to move to, reported a moment ago
	s.refused(host(8), edge1, 60_002, nil, full)
	for i, a := range []string{"10.0.0.1", "10.0.0.2"} {
		s.see(host(0), edge1, 60_010+i, netip.MustParseAddr(a))
	}
	s.refused(host(0), edge1, 60_020, []netip.Addr{netip.MustParseAddr("10.0.0.3")},
		"host-limit: host 02:00:00:00:00:00 has 2 addresses, the maximum: further ones are not learned until one expires")
}

func TestHostsAtLinks(t *testing.T) {
	s := newHostScript(t)
	s.see(host(1), edge1, 0, ip1)
	s.want(s.SetLinkPorts([]PortID{edge1}, at(1)), "host-removed: host 02:00:00:00:00:01 at s1/10 is removed, because its port s1/10 has a link")
	s.refused(host(1), edge1, 2, nil)
	s.accepted(host(1), edge2, 3, []netip.Addr{ip1}, "host-added: host 02:00:00:00:00:01 is at s2/10", "host-changed: host 02:00:00:00:00:01 has the address 10.0.0.1")
	s.see(host(1), edge3, 4)
	s.SetLinkPorts([]PortID{edge1, edge3}, at(5))
	s.want(s.Expire(at(300))) // the candidate turned out to be a link
	s.wantAt(host(1), edge2, ip1)
}

func TestConfiguredHost(t *testing.T) {
	s := newHostScript(t)
	s.see(host(1), edge2, 0)
	s.see(host(2), edge2, 0, ip1)
	h1 := Host{HostID: host(1), Name: "h1", Addrs: []netip.Addr{ip1}, At: edge1}
	s.want(s.Configure([]Host{h1}, at(1)),
		"host-moved: host h1 (02:00:00:00:00:01) is configured at s1/10, and was at s2/10",
		"host-changed: host 02:00:00:00:00:02 no longer has the address 10.0.0.1, which is configured for host h1 (02:00:00:00:00:01)")
	s.refused(host(1), edge2, 2, nil, "host-stayed: host h1 (02:00:00:00:00:01) is configured at s1/10: a frame with its MAC at s2/10 is refused; correct the configuration if the host was moved")
	s.PortDown(edge1)
	s.refused(host(1), edge2, 1000, nil)
	s.refused(host(2), edge2, 1001, []netip.Addr{ip1}, "address-claimed: address 10.0.0.1 belongs to host 02:00:00:00:00:01, and host 02:00:00:00:00:02 at s2/10 uses it too: give one of them another address")
	s.refused(host(1), edge1, 1002, []netip.Addr{ip2}) // reported a moment ago
	s.want(s.Expire(at(1_000_000)), "host-removed: host 02:00:00:00:00:02 at s2/10 is expired")
	s.wantAt(host(1), edge1, ip1)
	h1.Addrs = nil
	s.want(s.Configure([]Host{h1}, at(1_000_001)))
	s.accepted(host(1), edge1, 1_000_002, []netip.Addr{ip2}, "host-changed: host h1 (02:00:00:00:00:01) has the address 10.0.0.2")
	s.want(s.Expire(at(2_000_000)), // both are learned addresses now
		"host-changed: host h1 (02:00:00:00:00:01) no longer has the address 10.0.0.1", "host-changed: host h1 (02:00:00:00:00:01) no longer has the address 10.0.0.2")
	s.want(s.Configure(nil, at(2_000_001)), "host-removed: host h1 (02:00:00:00:00:01) at s1/10 is removed from the configuration")
}

// TestHostLearnerProperties: after random sightings the bounds hold, each address has one host, no host is at a port with
// a link, the indices agree with the hosts, events agree with Hosts, and a host that is seen at its port in each Silence
// stays there.
func TestHostLearnerProperties(t *testing.T) {
	ports := []PortID{edge1, edge2, edge3, {4, 10}}
	rapid.Check(t, func(t *rapid.T) {
		rules := HostRules{200 * time.Millisecond, 2 * time.Second, 2, 5, 2}
		l := NewHostLearner(rules, short)
		at0 := map[HostID]PortID{}
		lively := host(0)
		now := 0
		record := func(events []Event) {
			for _, e := range events {
				switch e.Kind {
				case HostAdded, HostMoved:
					at0[e.Host] = e.Port
				case HostRemoved:
					delete(at0, e.Host)
				}
			}
		}
		observe := func(id HostID, p PortID, a netip.Addr) {
			_, events := l.Observe(Sighting{id, []netip.Addr{a}, p, FromARP}, at(now))
			record(events)
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += rapid.IntRange(1, 90).Draw(t, "ms")
			observe(lively, edge1, netip.MustParseAddr("10.0.1.1"))
			p := rapid.SampledFrom(ports).Draw(t, "port")
			switch rapid.IntRange(0, 15).Draw(t, "what") {
			case 0:
				if p != edge1 {
					l.PortDown(p)
				}
			case 1:
				l.PortUp(p)
			case 2:
				record(l.SetLinkPorts(ports[3:][:rapid.IntRange(0, 1).Draw(t, "links")], at(now)))
			case 3:
				record(l.Expire(at(now)))
			default:
				id := host(rapid.Byte().Draw(t, "host") % 8)
				observe(id, p, netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, "address") % 4}))
			}
			owners := map[netip.Addr]HostID{}
			perPort := map[PortID]int{}
			kept := l.Hosts()
			l.list = nil
			hosts := l.Hosts()
			if !reflect.DeepEqual(kept, hosts) {
				t.Fatalf("the hosts are %+v, and the list is %+v", hosts, kept)
			}
			for p := range l.down {
				if !l.matters(p) {
					t.Fatalf("it is kept that %v is down, where no host is", p)
				}
			}
			for _, h := range hosts {
				perPort[h.At]++
				if len(h.Addrs) > rules.PerHost || perPort[h.At] > rules.PerPort || len(hosts) > rules.Total || l.links[h.At] {
					t.Fatalf("bounds are exceeded: %+v", hosts)
				}
				for _, a := range h.Addrs {
					if other, ok := owners[a]; ok {
						t.Fatalf("%v belongs to %v and %v", a, other, h.HostID)
					}
					owners[a] = h.HostID
					if l.addrs[vlanAddr{0, a}] != h.HostID {
						t.Fatalf("%v belongs to %v, and the index says %v", a, h.HostID, l.addrs[vlanAddr{0, a}])
					}
				}
				if at0[h.HostID] != h.At || !l.at[h.At][h.HostID] {
					t.Fatalf("%v is at %v, and the events say %v", h.HostID, h.At, at0[h.HostID])
				}
			}
			if len(at0) != len(hosts) || len(owners) != len(l.addrs) || len(perPort) != len(l.at) {
				t.Fatalf("%d hosts, %d by events; %d addresses, %d in the index; %d ports, %d in the index", len(hosts), len(at0), len(owners), len(l.addrs), len(perPort), len(l.at))
			}
			for id := range l.moving {
				if l.hosts[id] == nil || l.hosts[id].candidate == (PortID{}) {
					t.Fatalf("%v is not moving", id)
				}
			}
			if at0[lively] != edge1 {
				t.Fatalf("the host that is seen at %v every 90 ms is at %v", edge1, at0[lively])
			}
		}
	})
}

// TestHostFlood: a port that sends with 100,000 MACs and addresses costs a bounded number of hosts, notes and events.
func TestHostFlood(t *testing.T) {
	s := newHostScript(t)
	s.see(host(1), edge1, 0, ip1)
	events := 0
	for i := range 100_000 {
		mac := MAC{2, 1, byte(i >> 16), byte(i >> 8), byte(i)}
		_, e := s.see(HostID{MAC: mac}, edge2, 1+i/1000, ip1, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
		events += len(e)
		_, e = s.see(host(1), PortID{9, PortNo(i + 1)}, 1+i/1000, ip1)
		events += len(e)
	}
	if n := len(s.Hosts()); n > 5 || events > 20 || len(s.noted) > 20 || len(s.down) > 0 {
		t.Errorf("%d hosts, %d events, %d notes, %d ports", n, events, len(s.noted), len(s.down))
	}
	s.wantAt(host(1), edge1, ip1)
}

// TestExpireScans: Expire between two scans leaves hosts that have expired, and finds them in the next one.
func TestExpireScans(t *testing.T) {
	s := newHostScript(t)
	s.see(host(1), edge1, 0)
	s.want(s.Expire(at(9_900)))
	s.want(s.Expire(at(10_000)))
	s.want(s.Expire(at(10_100)), "host-removed: host 02:00:00:00:00:01 at s1/10 is expired")
}

func BenchmarkHostLearner(b *testing.B) {
	l := NewHostLearner(HostRules{time.Second, time.Hour, 100, 10_000, 8}, nil)
	ms := 0
	for b.Loop() { // each of 10,000 hosts once, and an expiry
		ms++
		for i := range 10_000 {
			mac := MAC{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}
			l.Observe(Sighting{HostID{MAC: mac}, []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})}, PortID{DPID(1 + i/10), 1}, FromARP}, at(ms))
		}
		l.Expire(at(ms))
	}
	if n := len(l.Hosts()); n != 10_000 {
		b.Fatal(fmt.Sprint(n, " hosts"))
	}
}

// A port of a router has any number of hosts, and other ports the number that was set.
func TestSetBounds(t *testing.T) {
	l := NewHostLearner(HostRules{Silence: time.Second, Expiry: time.Hour, PerPort: 1, Total: 1000, PerHost: 4}, nil)
	router, other := PortID{1, 1}, PortID{1, 2}
	l.SetBounds(2, []PortID{router})
	now := time.Unix(1, 0)
	for n := range 10 {
		for i, p := range []PortID{router, other} {
			ok, events := l.Observe(Sighting{HostID: HostID{MAC: MAC{2, 0, 0, 0, byte(i), byte(n)}}, At: p}, now)
			if want := p == router || n < 2; ok != want {
				t.Errorf("host %d at port %v: %v, %v", n, p, ok, events)
			}
		}
	}
}
