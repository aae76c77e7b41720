package shapertest

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/meter"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// flood returns UDP flows on all four groups' ports, 160 % of the limit.
func flood(limit unit.Rate, in bool) (flows []traffic.Flow) {
	from, to := "server", "client"
	if in {
		from, to = to, from
	}
	for i := range 4 {
		flows = append(flows, traffic.Flow{
			Name: fmt.Sprintf("g%d", i+1), From: from, To: to, Protocol: traffic.UDP, DstPort: uint16(5001 + i),
			Schedule: traffic.Constant(limit * 2 / 5),
		})
	}
	return flows
}

// guaranteesUnderOverload offers 40 % of the limit to each of the groups of 10, 20,
// 30 and 40 %.
func guaranteesUnderOverload(s *suite) {
	const limit = 50 * unit.Mbit
	both(s, func(s *suite, in bool) {
		labtest.Try(s.t, func(t *labtest.Check) {
			s.apply(onePlan(four(s, limit), in))
			r, err := traffic.Run(s.Context(), s.lab.Host, flood(limit, in), traffic.Options{Duration: 4 * time.Second})
			if err != nil {
				s.Fatal(err)
			}
			var total float64
			for i, f := range r.Flows {
				rate := f.Between(2*time.Second, 4*time.Second).DeliveredRate()
				total += rate
				// A group whose guarantee covers its offer gets the whole offer.
				if owed := float64(limit) / 10 * float64(i+1); rate < s.f.Guarantee*owed {
					t.Errorf("%s gets %.2f Mbit/s of a guarantee of %.0f; the minimum is %.2f", f.Name, rate/1e6, owed/1e6, s.f.Guarantee*owed/1e6)
				}
			}
			// The upper bound allows for a quantum that began before the interval, and for
			// payload instead of layer-2 rates.
			if total < s.f.Total*float64(limit) || total > 1.06*float64(limit) {
				t.Errorf("the total is %.2f Mbit/s of %v; the minimum is %.2f and the maximum %.2f", total/1e6, limit, s.f.Total*50, 1.06*50)
			}
			s.clear()
		})
	})
}

// controlTraffic sends control traffic through a direction that is flooded in all groups, and
// checks that all of it arrives.
func controlTraffic(s *suite) {
	const limit = 10 * unit.Mbit
	const each = 8 // of twelve kinds in 2 s: some 30 kbit/s of a budget of 50
	l4 := func(proto uint8, src, dst string, sport, dport uint16) group.Packet {
		return group.Packet{Proto: proto, Src: v4(src), Dst: v4(dst), SPort: sport, DPort: dport}
	}
	ack := l4(group.TCP, "10.9.0.1", "10.9.0.2", 5001, 5001)
	ack.PureAck = true
	ns := l4(group.ICMPv6, "fd99::1", "fd99::2", 0, 0)
	ns.ICMPType = 135
	ra, mld := ns, l4(group.ICMPv6, "fe80::1", "ff02::16", 0, 0)
	ra.ICMPType, mld.ICMPType = 134, 143
	kinds := []group.Packet{
		{Link: "arp"}, {Link: "lldp"}, {Link: "stp"}, {Link: "lacp"}, {Link: "eapol"}, ns, ra, mld, ack, l4(igmp, "10.9.0.1", "224.0.0.22", 0, 0),
		l4(group.UDP, "0.0.0.0", "255.255.255.255", 68, 67), l4(group.UDP, "fd99::1", "fd99::2", 546, 547),
	}
	both(s, func(s *suite, in bool) {
		s.apply(onePlan(four(s, limit), in))
		session, err := traffic.Start(s.Context(), s.lab.Host, flood(limit, in), traffic.Options{})
		if err != nil {
			s.Fatal(err)
		}
		// At the far end of the direction, after all queues.
		node, device := s.router, "server"
		if in {
			node, device = s.server, dev
		}
		seen := newArrivals(s, node, device)
		send := s.sender(in)
		time.Sleep(500 * time.Millisecond) // until queues are full and limits are used up
		before := direction(s.observe(), in)
		for range each {
			for _, p := range kinds {
				send.send(s, build(p, shape{}))
				time.Sleep(2 * time.Second / each / time.Duration(len(kinds)))
			}
		}
		time.Sleep(300 * time.Millisecond)
		after := direction(s.observe(), in)
		session.Stop()
		var lost uint64
		for _, f := range session.Wait().Flows {
			lost += f.Total.LostDatagrams
		}
		if lost == 0 {
			s.Error("the flood had no drops: the test is not valid")
		}
		got := seen.stop()
		for _, p := range kinds {
			if n := got[string(build(p, shape{}).bytes)]; n != each {
				s.Errorf("of %d packets %q, %d arrived", each, p, n)
			}
		}
		if n := after.Control.Packets - before.Control.Packets; n < each*uint64(len(kinds)) || after.Control.Drops > before.Control.Drops {
			s.Errorf("%d control packets were sent; %d were counted, with %d drops", each*len(kinds), n, after.Control.Drops-before.Control.Drops)
		}
		s.clear()
	})
}

// arrivals counts the test's frames where a device passes packets to its host.
type arrivals struct {
	fds   []int
	done  chan struct{}
	count chan map[string]uint64
}

func newArrivals(t testing.TB, n *lab.Node, dev string) *arrivals {
	t.Helper()
	a := &arrivals{done: make(chan struct{}), count: make(chan map[string]uint64)}
	err := n.Do(func() error {
		i, err := net.InterfaceByName(dev)
		if err != nil {
			return err
		}
		// A socket for all protocols would see a packet before the ingress hook, so
		// there is one for each (net/core/dev.c, __netif_receive_skb_core).
		for _, proto := range []uint16{unix.ETH_P_ARP, 0x88cc, unix.ETH_P_SLOW, unix.ETH_P_PAE, unix.ETH_P_802_2, unix.ETH_P_IP, unix.ETH_P_IPV6} {
			fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return err
			}
			a.fds = append(a.fds, fd)
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20); err != nil {
				return err
			}
			if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto>>8 | proto<<8, Ifindex: i.Index}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("listen on %s: %v", dev, err)
	}
	go a.receive()
	return a
}

func (a *arrivals) receive() {
	got := map[string]uint64{}
	buf := make([]byte, 1<<16)
	for {
		for _, fd := range a.fds {
			for {
				n, _, err := unix.Recvfrom(fd, buf, 0)
				if err != nil {
					break
				}
				if n > 12 && bytes.Equal(buf[6:12], srcMAC[:]) {
					got[string(buf[:n])]++
				}
			}
		}
		select {
		case <-a.done:
			a.count <- got
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// stop returns the frames that have arrived.
func (a *arrivals) stop() map[string]uint64 {
	close(a.done)
	got := <-a.count
	for _, fd := range a.fds {
		unix.Close(fd)
	}
	return got
}

// bytesOnTheWire compares the counters of groups with the frames that a meter counts on another
// host, with segmentation offload enabled: super-packets count as the frames into which they
// are segmented.
func bytesOnTheWire(s *suite) {
	both(s, func(s *suite, in bool) {
		s.apply(onePlan(four(s, 4*unit.Gbit), in)) // every flow is within its guarantee
		m, err := meter.New(meter.Options{Length: 5 * time.Second})
		if err != nil {
			s.Fatal(err)
		}
		defer m.Close()
		// For out: after the server. For in: before the server.
		at, from, to := "server", "server", "client"
		if in {
			at, from, to = "client", "client", "server"
		}
		if err := m.AttachDevice(s.router, at); err != nil {
			s.Fatal(err)
		}
		flows := []traffic.Flow{
			{Name: "g1", Protocol: traffic.TCP}, {Name: "g2", Protocol: traffic.TCP, IPv6: true},
			{Name: "g3", Protocol: traffic.UDP}, {Name: "g4", Protocol: traffic.UDP, IPv6: true},
		}
		for i := range flows {
			f := &flows[i]
			f.From, f.To, f.DstPort = from, to, uint16(5001+i)
			proto, rate := uint8(group.TCP), 200*unit.Mbit // in ticks of 1 ms: 25 KB at once
			if f.Protocol == traffic.UDP {
				proto, rate = group.UDP, 60*unit.Mbit
			}
			f.Schedule = []traffic.Step{{Rate: rate}, {At: 900 * time.Millisecond}}
			if err := m.DstPort(f.Name, proto, f.DstPort); err != nil {
				s.Fatal(err)
			}
		}
		if err := m.Start(traffic.MonotonicNow()); err != nil {
			s.Fatal(err)
		}
		if _, err := traffic.Run(s.Context(), s.lab.Host, flows, traffic.Options{Duration: time.Second}); err != nil {
			s.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		d := direction(s.observe(), in)
		var super bool
		for i, f := range flows {
			g := find(s, d, f.Name)
			wire, err := m.Totals(f.Name)
			if err != nil {
				s.Fatal(err)
			}
			super = super || wire.SKBs < wire.Packets
			// The sender's own pure acknowledgements (of the handshake and the end) have the
			// same port, but are control traffic.
			var acks uint64
			if i < 2 {
				acks = 4
			}
			if g.Bytes > wire.Bytes || g.Bytes+86*acks < wire.Bytes || g.Packets > wire.Packets || g.Packets+acks < wire.Packets ||
				g.Drops > 0 || wire.Bytes < 5_000_000 || wire.OutsideBytes > 0 {
				s.Errorf("%s: %d bytes in %d packets, %d drops; on the wire %+v", f.Name, g.Bytes, g.Packets, g.Drops, wire)
			}
		}
		if !super {
			s.Error("there was no super-packet: the test is not valid")
		}
		s.clear()
	})
}
