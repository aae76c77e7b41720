package shapertest

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// controlKinds returns one frame of every kind of control traffic.
func controlKinds() map[string]frame {
	ip := func(proto uint8, src, dst string) group.Packet {
		return group.Packet{Proto: proto, Src: v4(src), Dst: v4(dst)}
	}
	ports := func(p group.Packet, sport, dport uint16) group.Packet { p.SPort, p.DPort = sport, dport; return p }
	icmp := func(dst string, kind uint8) group.Packet {
		p := ip(group.ICMPv6, "fe80::1", dst)
		p.ICMPType = kind
		return p
	}
	ack := func(p group.Packet) group.Packet { p.PureAck = true; return ports(p, 40000, 443) }
	out := map[string]frame{}
	for name, p := range map[string]group.Packet{
		"arp": {Link: "arp"}, "lldp": {Link: "lldp"}, "stp": {Link: "stp"}, "lacp": {Link: "lacp"}, "eapol": {Link: "eapol"},
		"dhcp from a client":      ports(ip(group.UDP, "0.0.0.0", "255.255.255.255"), 68, 67),
		"dhcp from a server":      ports(ip(group.UDP, "10.9.0.1", "10.9.0.2"), 67, 68),
		"dhcp between relays":     ports(ip(group.UDP, "10.9.0.1", "10.9.0.2"), 67, 67),
		"dhcpv6 from a client":    ports(ip(group.UDP, "fe80::1", "ff02::1:2"), 546, 547),
		"dhcpv6 from a server":    ports(ip(group.UDP, "fe80::1", "fe80::2"), 547, 546),
		"router solicitation":     icmp("ff02::2", 133),
		"router advertisement":    icmp("ff02::1", 134),
		"neighbour solicitation":  icmp("ff02::1:ff00:2", 135),
		"neighbour advertisement": icmp("ff02::1", 136),
		"redirect":                icmp("fe80::2", 137),
		"mld report":              icmp("ff02::16", 143),
		"mld done":                icmp("ff02::2", 132),
		"igmp":                    ip(igmp, "10.9.0.1", "224.0.0.22"),
		"ack":                     ack(ip(group.TCP, "10.9.0.1", "10.9.0.2")),
		"ack of IPv6":             ack(ip(group.TCP, "fd99::1", "fd99::2")),
	} {
		out[name] = build(p, shape{})
	}
	out["ack with options"] = build(ack(ip(group.TCP, "10.9.0.1", "10.9.0.2")), shape{tcpOptions: 10})
	return out
}

// tagged returns the frame with a VLAN tag.
func (f frame) tagged(vlan uint16) []byte {
	b := append([]byte{}, f.bytes[:12]...)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, unix.ETH_P_8021Q), vlan)
	return append(b, f.bytes[12:]...)
}

// controlIsChecked: packets that only resemble control traffic are assigned by the rules.
func controlIsChecked(s *suite) {
	guest, rest := percent("guest", 10, 0), percent("rest", 80, 0)
	guest.Match = []group.Selector{{VLAN: []group.Range{{First: 7, Last: 7}}}}
	both(s, func(s *suite, in bool) {
		s.apply(onePlan(resolve(s, 100*unit.Mbit, rest, guest), in))
		send := s.sender(in)
		// sent sends a frame ten times, and returns how many count as control traffic.
		sent := func(b []byte) uint64 {
			before := s.counts(in)
			for range 10 {
				send.send(s, frame{bytes: b})
			}
			var got counts
			for range 100 {
				if got = s.counts(in).minus(before); got.control+got.groups["guest"] >= 10 {
					break
				}
				time.Sleep(2 * time.Millisecond)
			}
			if got.control+got.groups["guest"] < 10 {
				s.Errorf("ten frames of VLAN 7 were sent, counted: %v", got)
			}
			return got.control
		}
		for name, f := range controlKinds() {
			honest := f.tagged(7)
			if n := sent(honest); n < 10 {
				s.Errorf("%s: %d of ten are control traffic", name, n)
			}
			for what, change := range map[string]func(b []byte) []byte{
				"padded to 1,400 bytes": func(b []byte) []byte { return append(b, make([]byte, 1400-len(b))...) },
				"cut short":             func(b []byte) []byte { return b[:min(len(b)-1, 18+3)] },
				"of a hop limit of 64": func(b []byte) []byte {
					b[map[byte]int{4: 18 + 8, 6: 18 + 7}[b[18]>>4]] = 64
					return b
				},
				"to one host": func(b []byte) []byte { copy(b, dstMAC); return b },
				"of another protocol": func(b []byte) []byte {
					for i := range b[18:] {
						b[18+i] = 0xff
					}
					return b
				},
			} {
				if !dressesUp(f.Packet, what) {
					continue
				}
				if n := sent(change(append([]byte{}, honest...))); n > 0 {
					s.Errorf("%s %s: %d of ten are control traffic", name, what, n)
				}
			}
			time.Sleep(100 * time.Millisecond) // budgets refill
		}
		s.clear()
	})
}

// dressesUp reports whether a change excludes a packet from control traffic.
func dressesUp(p group.Packet, change string) bool {
	switch change {
	case "of a hop limit of 64":
		return p.Link == "" && p.Proto != group.TCP && p.Proto != group.UDP
	case "to one host":
		return p.Link == "lldp" || p.Link == "stp" || p.Link == "lacp"
	case "padded to 1,400 bytes":
		return p.Link != "lldp" // LLDP elements may fill a frame
	}
	return true
}

// controlFlood floods with each kind of control traffic, valid and modified, at twenty times
// the ceiling of a tenant, in both of its groups, from one sender and from forged senders. The
// tenant stays within its ceiling. Another group, which is full of its own traffic, keeps its
// rate, and its control traffic arrives.
func controlFlood(s *suite) {
	const limit, ceiling = 20 * unit.Mbit, unit.Mbit
	tenant := group.Group{Name: "guest", Guarantee: group.Amount{Rate: ceiling}, Ceiling: group.Amount{Rate: ceiling}, Match: []group.Selector{{VLAN: []group.Range{{First: 7, Last: 8}}}}}
	for i, name := range []string{"a", "b"} {
		tenant.Groups = append(tenant.Groups, group.Group{Name: name, Match: []group.Selector{{VLAN: []group.Range{{First: uint16(7 + i), Last: uint16(7 + i)}}}}, Default: i == 1})
	}
	rest := group.Group{Name: "rest", Guarantee: group.Amount{Rate: 18 * unit.Mbit}, Default: true}
	both(s, func(s *suite, in bool) {
		s.apply(onePlan(resolve(s, limit, tenant, rest), in))
		flows := flood(limit, in)[:3] // 120 % of the limit, in the default group
		session, err := traffic.Start(s.Context(), s.lab.Host, flows, traffic.Options{})
		if err != nil {
			s.Fatal(err)
		}
		defer func() { session.Stop(); session.Wait() }()
		node, device := s.router, "server"
		if in {
			node, device = s.server, dev
		}
		// Two sockets, because frames that wait in queues occupy the send buffer of their
		// socket.
		send := [2]*sender{s.sender(in), s.sender(in)}
		for name, f := range controlKinds() {
			if in && !slices.Contains([]string{"arp", "ack", "lldp", "neighbour solicitation", "dhcp from a server"}, name) {
				continue // the others are classified as in out
			}
			s.t.Run(name, func(t *testing.T) {
				labtest.Try(t, func(t *labtest.Check) {
					s.floodOf(t, send, newArrivals(t, node, device), f, dressed(f), in, limit, ceiling)
				})
			})
		}
		// The same in the other group, from one sender: control traffic of another sender keeps
		// its precedence.
		for _, name := range []string{"arp", "neighbour solicitation", "dhcp from a client", "lldp"} {
			f := controlKinds()[name]
			same := append([]byte{}, f.bytes...)
			same[11] = 0x77
			s.t.Run(name+" in the same group", func(t *testing.T) {
				labtest.Try(t, func(t *labtest.Check) {
					s.floodOf(t, send, newArrivals(t, node, device), f, [][]byte{same}, in, limit, ceiling)
				})
			})
		}
	})
}

// longestForm is the length in bytes of a frame with padding.
const longestForm = 1400

// dressed returns the variants of one kind that a tenant sends: valid, with forged senders, and
// with padding.
func dressed(f frame) (forms [][]byte) {
	for _, vlan := range []uint16{7, 8} {
		right := f.tagged(vlan)
		right[11] = 0x77
		forged := append([]byte{}, right...)
		forged[6], forged[7] = 2, 0x55
		forms = append(forms, right, forged, append(append([]byte{}, right...), make([]byte, longestForm-len(right))...))
	}
	return forms
}

// floodOf floods with one kind for 1.3 s and measures the last second.
func (s *suite) floodOf(t *labtest.Check, send [2]*sender, seen *arrivals, f frame, forms [][]byte, in bool, limit, ceiling unit.Rate) {
	const tick, flooded, honest = 2 * time.Millisecond, 20, 5
	one := f.bytes // of another sender, without a VLAN
	budget, n := 0, uint16(0)
	passed := func() (guest, rest, control uint64) {
		d := direction(s.observe(), in)
		return find(s, d, "guest/a").Bytes + find(s, d, "guest/b").Bytes, find(s, d, "rest").Bytes, d.Control.Bytes
	}
	var guest, rest, control uint64
	start := time.Now()
	var began time.Time
	for i := 0; time.Since(start) < 1300*time.Millisecond; i++ {
		for budget += int(flooded * ceiling.BytesPerSecond() / 500); budget > 0; n++ {
			b := forms[int(n)%len(forms)]
			if int(n)%len(forms)%3 == 1 {
				binary.BigEndian.PutUint16(b[8:], n)
			}
			send[0].try(t, b)
			budget -= len(b)
		}
		if began.IsZero() && time.Since(start) > 300*time.Millisecond {
			guest, rest, control = passed()
			began = time.Now()
		}
		if !began.IsZero() && i%(500/honest) == 0 {
			send[1].try(t, one)
		}
		time.Sleep(time.Until(start.Add(time.Duration(i) * tick)))
	}
	g, r, c := passed()
	lasted := time.Since(began).Seconds()
	time.Sleep(50 * time.Millisecond)
	rate := float64(g-guest+c-control) * 8 / lasted
	// A token bucket passes its rate and a burst. The budget of acknowledgements, 2 % of the ceiling, is used up at once
	// whenever it is full, each half second: the measured second has two or three such bursts. Each group may have a
	// packet more, and the other sender has some.
	burst := 0.02*float64(ceiling)/2 + 8*float64(2*longestForm+honest*len(one))
	if rate > 1.02*float64(ceiling)+burst/lasted {
		t.Errorf("a tenant with a ceiling of %v passes %.0f kbit/s, %.0f of them as control traffic", ceiling, rate/1e3, float64(c-control)*8/lasted/1e3)
	}
	if rate := float64(r-rest) * 8 / lasted; rate < 0.98*float64(limit-ceiling) {
		t.Errorf("the other group gets %.0f kbit/s of %v", rate/1e3, limit-ceiling)
	}
	if got := seen.stop(); got[string(one)] < 4 {
		t.Errorf("of some 5 frames of another sender, %d arrived", got[string(one)])
	}
}

// try sends a frame that may be dropped.
func (s *sender) try(t testing.TB, b []byte) {
	// Without waiting for space in the send buffer.
	if err := unix.Sendto(s.fd, b, unix.MSG_DONTWAIT, &s.to); err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EAGAIN) {
		t.Errorf("send: %v", err)
	}
}
