package fabric

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever happens to hosts, configured ones too, the list is that of the hosts, and the indices agree with it.
func TestHostTable(t *testing.T) {
	ports := []PortID{edge1, edge2, edge3}
	rapid.Check(t, func(t *rapid.T) {
		l := NewHostLearner(HostRules{200 * time.Millisecond, 2 * time.Second, 2, 5, 2}, short)
		draw := func(label string, below int) int { return rapid.IntRange(0, below-1).Draw(t, label) }
		address := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }
		now := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.IntRange(1, 500).Draw(t, "ms")
			p := ports[draw("port", len(ports))]
			switch draw("what", 8) {
			case 0:
				l.PortDown(p)
			case 1:
				l.SetLinkPorts(ports[:draw("links", 2)], at(now))
			case 2:
				l.Expire(at(now))
			case 3:
				var configured []Host
				for n := range draw("configured", 3) {
					one := Host{HostID: host(byte(2*draw("host", 2) + n)), Name: rapid.SampledFrom([]string{"", "web"}).Draw(t, "name"), At: p} // no two are the same
					if a := draw("address", 3); a > 0 {
						one.Addrs = []netip.Addr{address(2*a + n)}
					}
					configured = append(configured, one)
				}
				l.Configure(configured, at(now))
			default:
				l.Observe(Sighting{host(byte(draw("host", 5))), []netip.Addr{address(draw("address", 6))}, p, Learned(draw("by", 4))}, at(now))
			}
			kept := l.Hosts()
			l.list = nil
			hosts := l.Hosts()
			if !reflect.DeepEqual(kept, hosts) {
				t.Fatalf("the hosts are %+v, and the list is %+v", hosts, kept)
			}
			addresses, perPort := 0, map[PortID]int{}
			for _, h := range hosts {
				perPort[h.At]++
				if !l.at[h.At][h.HostID] {
					t.Fatalf("%v is at %v, and the index has it at another port", h.HostID, h.At)
				}
				for _, a := range h.Addrs {
					addresses++
					if owner, ok := l.owner(h.VLAN, a); !ok || owner.HostID != h.HostID {
						t.Fatalf("%v has the address %v, and the index says %+v", h.HostID, a, owner)
					}
				}
			}
			if addresses != len(l.addrs) || len(perPort) != len(l.at) {
				t.Fatalf("%d addresses, %d in the index; %d ports with hosts, %d in the index", addresses, len(l.addrs), len(perPort), len(l.at))
			}
		}
	})
}
