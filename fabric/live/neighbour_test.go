package live

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
)

// option is where the address of the interface is in what neighbour returns.
const option = 14 + 40 + 24

// Without a controller hosts go on to confirm their neighbours, and no host can confirm another than itself.
func TestNeighboursWithoutController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, ring, oftest.Options{}, oftest.Options{Tables: 7, Limits: oftest.Limits{Groups: -1, Meters: -1}})
		w.settle(time.Second)
		w.ping(time.Second)
		w.settle(time.Second)
		w.stop()
		from, to := w.hosts[0], w.hosts[2]
		mac, dst, other := fabric.MAC(from.MAC()), fabric.MAC(to.MAC()), fabric.MAC(w.hosts[1].MAC())
		own4, own6, other4, other6 := from.Addr(false), from.Addr(true), w.hosts[1].Addr(false), w.hosts[1].Addr(true)
		to4, to6 := to.Addr(false), to.Addr(true)
		with := func(f []byte, at int, b ...byte) []byte {
			f = slices.Clone(f)
			copy(f[at:], b)
			return f
		}
		request := arp(1, dst, 0, mac, own4, fabric.MAC{}, to4)
		solicit := neighbour(135, dst, 0, mac, own6, to6, to6)
		advertise := neighbour(136, dst, 0, mac, own6, to6, own6)
		without := func(f []byte) []byte { // the option, with the length of the payload
			return with(f[:option], 14+4, 0, 24)
		}
		for _, c := range []struct {
			name   string
			frame  []byte
			passes bool
		}{
			{"an ARP request", request, true},
			{"an ARP reply", arp(2, dst, 0, mac, own4, dst, to4), true},
			{"a solicitation", solicit, true},
			{"an advertisement", advertise, true},
			{"an advertisement without the MAC", without(advertise), true},
			{"an ARP request with the address of another", arp(1, dst, 0, mac, other4, fabric.MAC{}, to4), false},
			{"an ARP reply with the address of another", arp(2, dst, 0, mac, other4, dst, to4), false},
			{"an ARP request with an unknown address", arp(1, dst, 0, mac, netip.MustParseAddr("10.0.9.9"), fabric.MAC{}, to4), false},
			{"an ARP probe", arp(1, dst, 0, mac, netip.IPv4Unspecified(), fabric.MAC{}, to4), false},
			{"an ARP request for another MAC", with(request, 14+8, other[:]...), false},
			{"an ARP request from another MAC", with(request, 6, other[:]...), false},
			{"an ARP request of another host", arp(1, dst, 0, other, other4, fabric.MAC{}, to4), false},
			{"an ARP request in a VLAN", arp(1, dst, 7, mac, own4, fabric.MAC{}, to4), false},
			{"an ARP request to all", arp(1, fabric.MAC(oftest.Broadcast), 0, mac, own4, fabric.MAC{}, to4), false},
			{"a solicitation with the address of another", neighbour(135, dst, 0, mac, other6, to6, to6), false},
			{"a solicitation for another MAC", with(solicit, option+2, other[:]...), false},
			{"a solicitation without the MAC", without(solicit), false},
			{"a solicitation from another MAC", with(solicit, 6, other[:]...), false},
			{"an advertisement of the address of another", neighbour(136, dst, 0, mac, own6, to6, other6), false},
			{"an advertisement of the address of another without the MAC", without(neighbour(136, dst, 0, mac, own6, to6, other6)), false},
			{"an advertisement for another MAC", with(advertise, option+2, other[:]...), false},
			{"an advertisement from another MAC", with(advertise, 6, other[:]...), false},
		} {
			for _, h := range w.hosts {
				h.Forget()
			}
			from.Send(c.frame)
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			for _, h := range w.hosts {
				got := slices.ContainsFunc(h.Received(), func(r oftest.Received) bool { return slices.Equal(r.Frame, c.frame) })
				if want := c.passes && h == to; got != want {
					t.Errorf("%s: received by %s: %v, want %v", c.name, h.Name(), got, want)
				}
			}
			if c.name == "an ARP request" || c.name == "a solicitation" {
				if len(from.Received()) != 1 {
					t.Errorf("%s has %d answers, want one", c.name, len(from.Received()))
				}
			}
		}
		if s := w.net.Storm(); s.Looped > 0 || s.Overflow > 0 {
			t.Errorf("frames go round: %+v", s)
		}
	})
}

// The controller does not see how hosts confirm each other, so it asks those of which it sees nothing. One that is there stays with
// its addresses, and one that has left expires.
func TestSilentHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, [][2]int{{0, 1}})
		w.settle(time.Second)
		w.ping(time.Second)
		w.settle(time.Second)
		before := w.live.Counters()
		w.hosts[1].Cable().Lose(true, true)
		time.Sleep(rules.Expiry + rules.Expiry/8)
		synctest.Wait()
		hosts := w.live.Plan().Topology.Hosts()
		if len(hosts) != 1 || openflow.MAC(hosts[0].MAC) != w.hosts[0].MAC() || len(hosts[0].Addrs) != 2 {
			t.Errorf("hosts %+v, want the one that answers, with its two addresses", hosts)
		}
		if after := w.live.Counters(); after.Flooded > before.Flooded {
			t.Errorf("%d answers were sent to all hosts", after.Flooded-before.Flooded)
		}
	})
}
