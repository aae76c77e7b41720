package shapertest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/cgroup2"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

func v4(s string) netip.Addr     { return netip.MustParseAddr(s) }
func ap(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func prefixes(list ...string) (out []netip.Prefix) {
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// rulesByPackets sends, for each field of a rule, packets that differ only in this field.
func rulesByPackets(s *suite) {
	port := func(first, last uint16) []group.PortRange { return []group.PortRange{{First: first, Last: last}} }
	base := group.Packet{Proto: group.UDP, Src: v4("10.9.0.1"), Dst: v4("10.9.0.2"), SPort: 10, DPort: 20}
	base6 := base
	base6.Src, base6.Dst = v4("fd99::1"), v4("fd99::2")
	with := func(p group.Packet, change func(*group.Packet)) group.Packet { change(&p); return p }
	cases := []struct {
		name  string
		rule  group.Selector
		match []group.Packet
		shape shape
	}{
		{"tcp", group.Selector{Proto: []uint8{group.TCP}}, []group.Packet{
			with(base, func(p *group.Packet) { p.Proto = group.TCP }), with(base6, func(p *group.Packet) { p.Proto = group.TCP })}, shape{}},
		{"icmp", group.Selector{Proto: []uint8{group.ICMP, group.ICMPv6}}, []group.Packet{
			with(base, func(p *group.Packet) { p.Proto, p.ICMPType = group.ICMP, 8 }),
			with(base6, func(p *group.Packet) { p.Proto, p.ICMPType = group.ICMPv6, 128 })}, shape{}},
		// Tunnels are matched by the outer header; the inner packet resembles UDP.
		{"gre", group.Selector{Proto: []uint8{47}}, []group.Packet{with(base, func(p *group.Packet) { p.Proto = 47 })}, shape{payload: 100}},
		{"ipip", group.Selector{Proto: []uint8{4}}, []group.Packet{with(base, func(p *group.Packet) { p.Proto = 4 })}, shape{payload: 100}},
		{"sport", group.Selector{SPort: []group.PortRange{{First: 80, Last: 80}, {First: 443, Last: 443}}}, []group.Packet{
			with(base, func(p *group.Packet) { p.SPort = 80 }), with(base6, func(p *group.Packet) { p.SPort = 443 }),
			with(base, func(p *group.Packet) { p.SPort, p.Proto = 443, group.SCTP })}, shape{}},
		{"dport", group.Selector{Proto: []uint8{group.UDP}, DPort: port(3000, 3999)}, []group.Packet{
			with(base, func(p *group.Packet) { p.DPort = 3000 }), with(base, func(p *group.Packet) { p.DPort = 3999 }),
			with(base6, func(p *group.Packet) { p.DPort = 3500 })}, shape{}},
		{"src", group.Selector{Src: prefixes("10.7.0.0/16", "fd77::/16")}, []group.Packet{
			with(base, func(p *group.Packet) { p.Src = v4("10.7.255.255") }), with(base6, func(p *group.Packet) { p.Src = v4("fd77:1::") })}, shape{}},
		{"dst", group.Selector{Dst: prefixes("10.8.0.0/25", "fd78::5/128")}, []group.Packet{
			with(base, func(p *group.Packet) { p.Dst = v4("10.8.0.127") }), with(base6, func(p *group.Packet) { p.Dst = v4("fd78::5") })}, shape{}},
		{"dscp", group.Selector{DSCP: []group.Range{group.SingleRange(8), group.SingleRange(46), {First: 48, Last: 55}}}, []group.Packet{
			with(base, func(p *group.Packet) { p.DSCP = 46 }), with(base6, func(p *group.Packet) { p.DSCP = 8 }), with(base, func(p *group.Packet) { p.DSCP = 55 })}, shape{}},
		{"vlan", group.Selector{VLAN: []group.Range{group.SingleRange(7), {First: 100, Last: 199}, group.SingleRange(4094)}}, []group.Packet{
			with(base, func(p *group.Packet) { p.VLAN = 7 }), with(base, func(p *group.Packet) { p.VLAN = 199 }), with(base6, func(p *group.Packet) { p.VLAN = 4094 }),
			with(group.Packet{Link: "0x88b5"}, func(p *group.Packet) { p.VLAN = 7 })}, shape{}},
		{"outer-tag", group.Selector{VLAN: []group.Range{group.SingleRange(9)}}, []group.Packet{with(base, func(p *group.Packet) { p.VLAN = 9 })}, shape{outerTag: true}},
		{"pcp", group.Selector{PCP: []group.Range{{First: 5, Last: 7}}}, []group.Packet{
			with(base, func(p *group.Packet) { p.VLAN, p.PCP = 300, 5 }), with(base6, func(p *group.Packet) { p.VLAN, p.PCP = 300, 7 }),
			with(base, func(p *group.Packet) { p.PriorityTag, p.PCP = true, 6 })}, shape{}},
		{"mark", group.Selector{Mark: []group.Mark{{Value: 7, Mask: group.AllBits}, {Value: 0x4000, Mask: 0xff00}}}, []group.Packet{
			with(base, func(p *group.Packet) { p.Mark = 7 }), with(base6, func(p *group.Packet) { p.Mark = 0xab4012 })}, shape{}},
		{"smac", group.Selector{SMAC: []group.MAC{{Address: [6]byte{0xaa, 0xbb, 0xcc}, Mask: [6]byte{0xff, 0xff, 0xff}}}}, []group.Packet{
			with(base, func(p *group.Packet) { p.SMAC = [6]byte{0xaa, 0xbb, 0xcc, 1, 2, 3} }), with(base6, func(p *group.Packet) { p.SMAC = [6]byte{0xaa, 0xbb, 0xcc, 9, 9, 9} })}, shape{}},
		{"not", group.Selector{Src: prefixes("10.5.0.0/16"), Not: []group.Selector{{Src: prefixes("10.5.6.0/24"), DPort: port(80, 89), VLAN: []group.Range{{First: 500, Last: 599}}}}},
			[]group.Packet{with(base, func(p *group.Packet) { p.Src = v4("10.5.7.1") }), with(base, func(p *group.Packet) { p.Src, p.DPort, p.VLAN = v4("10.5.5.1"), 90, 600 })}, shape{}},
		{"options", group.Selector{DPort: port(4000, 4000)}, []group.Packet{
			with(base, func(p *group.Packet) { p.DPort = 4000 }), with(base6, func(p *group.Packet) { p.DPort = 4000 })}, shape{ipOptions: 3, extensions: 2}},
	}
	groups := []group.Group{percent("rest", 1, 0)}
	for _, c := range cases {
		g := percent(c.name, 1, 0)
		g.Match = []group.Selector{c.rule}
		groups = append(groups, g)
	}
	tree := resolve(s, unit.Gbit, groups...)
	both(s, func(s *suite, in bool) {
		s.apply(onePlan(tree, in))
		send := s.sender(in)
		goes := func(want string, p group.Packet, sh shape) {
			s.Helper()
			if p.Mark > 0 && in {
				return // marks are not transmitted
			}
			before := s.counts(in)
			for range 3 {
				send.send(s, build(p, sh))
			}
			var got counts
			deadline := time.Now().Add(500 * time.Millisecond)
			for got = s.counts(in).minus(before); got.groups[want] < 3 && time.Now().Before(deadline); got = s.counts(in).minus(before) {
				time.Sleep(time.Millisecond)
			}
			if got.groups[want] != 3 {
				s.Errorf("3 packets %q should be assigned to %s; counted: %v", p, want, got)
			}
		}
		goes("rest", base, shape{payload: 100})
		goes("rest", base6, shape{payload: 100})
		goes("rest", group.Packet{Link: "0x88b5"}, shape{})
		for _, c := range cases {
			for _, p := range c.match {
				goes(c.name, p, c.shape)
			}
		}
		for _, p := range []group.Packet{
			with(base, func(p *group.Packet) { p.SPort = 81 }), with(base, func(p *group.Packet) { p.DPort = 4001 }),
			with(base, func(p *group.Packet) { p.Src = v4("10.6.255.255") }), with(base, func(p *group.Packet) { p.Dst = v4("10.8.0.128") }),
			with(base6, func(p *group.Packet) { p.Dst = v4("fd78::6") }), with(base, func(p *group.Packet) { p.DSCP = 9 }),
			with(base, func(p *group.Packet) { p.VLAN = 8 }), with(base, func(p *group.Packet) { p.VLAN = 200 }), with(base, func(p *group.Packet) { p.VLAN, p.PCP = 300, 4 }),
			with(base, func(p *group.Packet) { p.Mark = 0x4100 }), with(base, func(p *group.Packet) { p.SMAC = [6]byte{0xaa, 0xbb, 0xcd, 1, 2, 3} }),
			with(base, func(p *group.Packet) { p.Src = v4("10.5.6.1") }), with(base, func(p *group.Packet) { p.Src, p.DPort = v4("10.5.7.1"), 85 }),
			with(base, func(p *group.Packet) { p.Src, p.VLAN = v4("10.5.7.1"), 599 }), with(base, func(p *group.Packet) { p.DSCP = 56 }), with(base, func(p *group.Packet) { p.Proto, p.SPort = 47, 0 }),
		} {
			want := "rest"
			if p.Proto == 47 {
				want = "gre"
			}
			goes(want, p, shape{})
		}
		s.clear()
	})
}

// rulesByCgroup sends from processes in cgroups: a socket is matched by the cgroup in which it
// was created, or by the nearest parent that a rule names.
func rulesByCgroup(s *suite) {
	root, err := cgroup2.Mount()
	if err != nil {
		s.Fatal(err)
	}
	top := fmt.Sprintf("/headgate-test-%d", os.Getpid())
	for _, dir := range []string{"", "/web", "/web/worker", "/other"} {
		path := filepath.Join(root, top, dir)
		if err := os.Mkdir(path, 0o755); err != nil {
			s.Fatal(err)
		}
		s.Cleanup(func() {
			var err error
			for range 100 { // a process leaves its cgroup some time after its end
				if err = os.Remove(path); err == nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			s.Errorf("remove %s: %v", path, err)
		})
	}
	rest, web, worker := percent("rest", 10, 0), percent("web", 10, 0), percent("worker", 10, 0)
	worker.Match = []group.Selector{{Cgroup: top + "/web/worker", DPort: []group.PortRange{{First: 9001, Last: 9001}}}}
	web.Match = []group.Selector{{Cgroup: top + "/web"}}
	s.apply(hostPlan(resolve(s, unit.Gbit, rest, worker, web), nil))
	for _, c := range []struct{ cgroup, port, group string }{
		{"/web", "9000", "web"}, {"/web", "9001", "web"}, {"/web/worker", "9000", "web"}, {"/web/worker", "9001", "worker"},
		{"/other", "9001", "rest"}, {"", "9001", "rest"},
	} {
		for _, to := range []string{"10.0.0.1:" + c.port, "[fd00::1]:" + c.port} {
			fd, err := unix.Open(filepath.Join(root, top, c.cgroup), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				s.Fatal(err)
			}
			before := s.counts(false)
			cmd := command(s, "send", nil, to)
			cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
			s.do(cmd.Start)
			unix.Close(fd)
			if err := cmd.Wait(); err != nil {
				s.Fatalf("send from %s: %v: %v", c.cgroup, err, cmd.Stderr)
			}
			eventually(s, time.Second, func() string {
				if got := s.counts(false).minus(before); got.groups[c.group] != 10 {
					return fmt.Sprintf("10 packets from cgroup %q to %s should be assigned to %s; counted: %v", c.cgroup, to, c.group, got)
				}
				return ""
			})
		}
	}
	p := hostPlan(resolve(s, unit.Gbit, rest, web), nil)
	p.Out.Rules[0].Selector.Cgroup = top + "/nobody"
	err = s.server.Do(func() error { _, err := s.engine.Apply(p); return err })
	if err == nil || !strings.Contains(err.Error(), "nobody") {
		s.Errorf("a cgroup that does not exist: %v", err)
	}
	if st := s.observe(); len(st.Plan.Out.Nodes) != 3 || len(st.Drift) > 0 {
		s.Errorf("the rejected plan changed the state: %+v", st)
	}
}

// rulesByFragments sends datagrams of three fragments: all are assigned like the first
// fragment, which has the ports.
func rulesByFragments(s *suite) {
	both(s, func(s *suite, in bool) {
		s.apply(onePlan(resolve(s, unit.Gbit, percent("rest", 10, 0), percent("big", 10, 5001)), in))
		from, to := "server", "client"
		if in {
			from, to = to, from
		}
		for _, ipv6 := range []bool{false, true} {
			before := s.counts(in)
			flow := traffic.Flow{
				Name: "big", From: from, To: to, Protocol: traffic.UDP, IPv6: ipv6, DstPort: 5001, Payload: 4000,
				Schedule: traffic.Constant(3200 * unit.Kbit), // 100 datagrams per second; an emulated processor once sent only 38
			}
			r, err := traffic.Run(s.Context(), s.lab.Host, []traffic.Flow{flow}, traffic.Options{Duration: 500 * time.Millisecond})
			if err != nil {
				s.Fatal(err)
			}
			sent := r.Flows[0].Total.Datagrams
			got := s.counts(in).minus(before)
			if sent < 10 || got.groups["big"] < 3*sent || got.groups["big"] > 3*sent+3 || got.groups["rest"] > 0 || r.Flows[0].Total.LostDatagrams > 0 {
				s.Errorf("IPv6 %v: sent %d datagrams in 3 fragments each, counted: %v (%d lost)", ipv6, sent, got, r.Flows[0].Total.LostDatagrams)
			}
		}
		// With options after the fragment header, which only the first fragment contains.
		send, before := s.sender(in), s.counts(in)
		p := group.Packet{Proto: group.UDP, Src: netip.MustParseAddr("fd00:10::1"), Dst: netip.MustParseAddr("fd00:11::1"), SPort: 7, DPort: 5001}
		for _, id := range []uint32{1, 2, 3} {
			p.Fragment = false
			send.send(s, build(p, shape{more: true, fragmented: 1, id: id}))
			p.Fragment = true
			send.send(s, build(p, shape{fragmented: 1, id: id}))
		}
		eventually(s, time.Second, func() string {
			if got := s.counts(in).minus(before); got.groups["big"] != 6 || got.groups["rest"] > 0 {
				return fmt.Sprintf("sent 3 IPv6 datagrams in 2 fragments each, with options, counted: %v", got)
			}
			return ""
		})
		s.clear()
	})
}

// manyShapes uses rules of 121 combinations of prefix lengths, close to the maximum of 128, and
// 2,000 rules of one more combination. The verifier must accept them, and packets must be found
// in the last and in the first.
func manyShapes(s *suite) {
	groups := []group.Group{percent("rest", 10, 0), percent("many", 10, 0), percent("last", 10, 0)}
	for i := range 11 {
		for j := range 11 {
			groups[1].Match = append(groups[1].Match, group.Selector{
				Src: []netip.Prefix{netip.PrefixFrom(v4("10.11.0.0"), 16+i).Masked()},
				Dst: []netip.Prefix{netip.PrefixFrom(v4("10.12.0.0"), 16+j).Masked()},
			})
		}
	}
	for i := range 2000 {
		groups[2].Match = append(groups[2].Match, group.Selector{
			Proto: []uint8{group.UDP}, DPort: []group.PortRange{{First: uint16(10000 + i), Last: uint16(10000 + i)}},
		})
	}
	tree := resolve(s, unit.Gbit, groups...)
	s.apply(hostPlan(tree, tree))
	both(s, func(s *suite, in bool) {
		send, before := s.sender(in), s.counts(in)
		for _, p := range []group.Packet{
			{Proto: group.UDP, Src: v4("10.11.255.1"), Dst: v4("10.12.255.1")}, // 16 and 16 bits
			{Proto: group.UDP, Src: v4("10.11.0.1"), Dst: v4("10.12.0.1"), DPort: 11999},
			{Proto: group.UDP, Src: v4("10.13.0.1"), Dst: v4("10.12.0.1"), DPort: 11999},
			{Proto: group.UDP, Src: v4("10.13.0.1"), Dst: v4("10.12.0.1"), DPort: 12000},
		} {
			send.send(s, build(p, shape{}))
		}
		eventually(s, time.Second, func() string {
			got := s.counts(in).minus(before)
			if got.groups["many"] != 2 || got.groups["last"] != 1 || got.groups["rest"] != 1 {
				return fmt.Sprintf("counted by group %v, want many 2, last 1, rest 1", got.groups)
			}
			return ""
		})
	})
}

// likeOracle generates rules and packets, sends the packets, and compares the counters of every
// rule and group with group.Tree.Classify. Fields have few values, so that rules overlap and
// most of them match some packets.
func likeOracle(s *suite) {
	r := seeded(s)
	const trees, packets = 40, 400
	both(s, func(s *suite, in bool) {
		send := s.sender(in)
		for n := range trees {
			tree := s.applyRandom(r, in)
			var frames []frame
			for range packets {
				frames = append(frames, randomFrame(r, in))
			}
			if problem := s.compare(send, tree, in, frames); problem == "" {
				continue
			}
			// One by one, to identify the packet.
			for _, f := range frames {
				if problem := s.compare(send, tree, in, []frame{f}); problem != "" {
					s.Fatalf("tree %d: packet %q (% x): %s\nrules:\n%s", n, f.Packet, f.bytes, problem, rulesText(tree))
				}
			}
			s.Fatalf("tree %d: %d packets were counted differently in a batch and one by one", n, packets)
		}
		s.clear()
	})
}

// applyRandom applies a random tree.
func (s *suite) applyRandom(r *rand.Rand, in bool) *group.Tree {
	s.Helper()
	for {
		tree := randomTree(s, r)
		err := s.server.Do(func() error { _, err := s.engine.Apply(onePlan(tree, in)); return err })
		if err == nil {
			return tree
		}
		if !strings.Contains(err.Error(), "different combinations of fields") && !strings.Contains(err.Error(), "multiply to more than") { // the random rules exceed a limit
			s.Fatal(err)
		}
	}
}

func (s *suite) compare(send *sender, tree *group.Tree, in bool, frames []frame) string {
	want := counts{make([]uint64, len(tree.Rules)), map[string]uint64{}, 0}
	for _, f := range frames {
		if f.Control() && !f.odd {
			want.control++
			continue
		}
		rule, leaf := tree.Classify(f.Packet)
		if rule >= 0 {
			want.rules[rule]++
		}
		want.groups[tree.Nodes[leaf].Path]++
	}
	before := s.counts(in)
	for _, f := range frames {
		send.send(s, f)
	}
	var got counts
	for range 100 { // queued packets are counted when they leave
		if got = s.counts(in).minus(before); got.String() == want.String() {
			return ""
		}
		time.Sleep(2 * time.Millisecond)
	}
	return fmt.Sprintf("counted %v\nwant    %v", got, want)
}

func rulesText(t *group.Tree) string {
	var b strings.Builder
	for i, r := range t.Rules {
		fmt.Fprintf(&b, "%3d %s -> %s\n", i, r.Selector, t.Nodes[r.Node].Path)
	}
	return b.String()
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

var (
	protoPool = []uint8{group.TCP, group.UDP, group.SCTP, group.ICMP, group.ICMPv6, igmp, 47, 4, 50}
	portPool  = []uint16{0, 53, 67, 68, 80, 443, 546, 547, 999, 1000, 1024, 1999, 5000, 65535}
	addrs4    = []string{"10.1.2.3", "10.1.2.4", "10.1.3.1", "10.2.0.1", "192.168.0.1", "255.255.255.255", "0.0.0.0", "224.0.0.22"}
	macs      = [][6]byte{{2, 0, 0, 0, 0, 1}, {0xaa, 0xbb, 0xcc, 1, 2, 3}, {0xaa, 0xbb, 0xcc, 1, 2, 4}, {0xaa, 0xbb, 0xcd}}
	addrs6    = []string{"fd00:1::5", "fd00:1::6", "fd00:2::5", "fd01::1", "::1", "ffff::ffff", "fe80::1", "::"}
)

func randomTree(s *suite, r *rand.Rand) *group.Tree {
	for {
		d := group.Direction{Limit: unit.Gbit}
		for i := range 2 + r.IntN(6) {
			g := percent(fmt.Sprintf("g%d", i), 10, 0)
			g.Default = i == 0
			for range r.IntN(6) {
				g.Match = append(g.Match, randomSelector(r))
			}
			d.Groups = append(d.Groups, g)
		}
		if tree, problems := d.Resolve("out", true); len(problems) == 0 {
			return &tree
		}
	}
}

// randomSelector returns a selector, with exclusions in a third of the cases.
func randomSelector(r *rand.Rand) group.Selector {
	s := randomFields(r)
	if r.IntN(3) == 0 {
		if not := randomFields(r); !not.IsZero() {
			s.Not = []group.Selector{not}
		}
	}
	return s
}

func randomFields(r *rand.Rand) (s group.Selector) {
	some := func(chance int, add func()) {
		for r.IntN(chance) == 0 {
			add()
		}
	}
	prefix := func() netip.Prefix {
		if r.IntN(2) == 0 {
			return netip.PrefixFrom(v4(pick(r, addrs4...)), pick(r, 0, 1, 8, 15, 16, 24, 31, 32)).Masked()
		}
		return netip.PrefixFrom(v4(pick(r, addrs6...)), pick(r, 0, 7, 8, 31, 32, 33, 64, 127, 128)).Masked()
	}
	ports := func() group.PortRange {
		a, b := pick(r, portPool...), pick(r, portPool...)
		if r.IntN(2) == 0 {
			b = a
		}
		return group.PortRange{First: min(a, b), Last: max(a, b)}
	}
	some(2, func() { s.Proto = append(s.Proto, pick(r, protoPool...)) })
	some(3, func() { s.Src = append(s.Src, prefix()) })
	some(3, func() { s.Dst = append(s.Dst, prefix()) })
	some(4, func() { s.SPort = append(s.SPort, ports()) })
	some(4, func() { s.DPort = append(s.DPort, ports()) })
	ranges := func(values ...uint16) group.Range {
		a, b := pick(r, values...), pick(r, values...)
		if r.IntN(2) == 0 {
			b = a
		}
		return group.Range{First: min(a, b), Last: max(a, b)}
	}
	some(5, func() { s.DSCP = append(s.DSCP, ranges(0, 8, 9, 46, 63)) })
	some(6, func() { s.VLAN = append(s.VLAN, ranges(1, 7, 99, 1000, 4094)) })
	some(7, func() { s.PCP = append(s.PCP, ranges(0, 3, 5, 7)) })
	some(6, func() {
		m := group.Mark{Value: pick[uint32](r, 0, 1, 7, 1<<31, 0x4007), Mask: pick[uint32](r, group.AllBits, group.AllBits, 7, 0xff00, 1<<31|1)}
		m.Value &= m.Mask
		s.Mark = append(s.Mark, m)
	})
	some(7, func() {
		m := group.MAC{Address: pick(r, macs...), Mask: pick(r, [6]byte{255, 255, 255, 255, 255, 255}, [6]byte{255, 255, 255}, [6]byte{5: 1})}
		for i := range m.Mask {
			m.Address[i] &= m.Mask[i]
		}
		s.SMAC = append(s.SMAC, m)
	})
	return s
}

var fragmentID uint32

func randomFrame(r *rand.Rand, in bool) frame {
	p := group.Packet{VLAN: pick[uint16](r, 0, 0, 0, 1, 7, 9, 100, 512, 4094), SMAC: pick(r, macs...)}
	if p.PriorityTag = p.VLAN == 0 && r.IntN(5) == 0; p.Tagged() {
		p.PCP = uint8(r.IntN(8))
	}
	if !in {
		p.Mark = pick[uint32](r, 0, 0, 1, 7, 8, 0x4007, 0x4100, 1<<31)
	}
	sh := shape{payload: pick(r, r.IntN(40), r.IntN(40), r.IntN(800)), ipOptions: r.IntN(3), extensions: r.IntN(3), outerTag: r.IntN(4) == 0, syn: r.IntN(4) == 0}
	if r.IntN(12) == 0 {
		p.Link = pick(r, "arp", "lldp", "stp", "lacp", "eapol", "0x88b5", "0x8864")
		return build(p, sh)
	}
	p.Proto, p.DSCP = pick(r, protoPool...), pick[uint8](r, 0, 8, 9, 46, 63)
	list := addrs4
	if r.IntN(2) == 0 {
		list = addrs6
	}
	p.Src, p.Dst = v4(pick(r, list...)), v4(pick(r, list...))
	switch p.Proto {
	case group.TCP, group.UDP, group.SCTP:
		p.SPort, p.DPort = pick(r, portPool...), pick(r, portPool...)
		p.PureAck = p.Proto == group.TCP && !sh.syn && r.IntN(3) == 0
	case group.ICMP, group.ICMPv6:
		p.ICMPType = pick[uint8](r, 0, 8, 128, 132, 133, 135, 136, 137, 138, 143)
	}
	p.TTL = pick[uint8](r, 0, 0, 0, 0, 1, 64, 255)
	if r.IntN(10) == 0 {
		fragmentID++ // of a datagram whose first fragment was not sent
		p.Fragment, p.PureAck, sh.id = true, false, fragmentID
	}
	f := build(p, sh)
	f.Length = uint16(len(f.bytes) - f.linkHeader)
	options := sh.ipOptions
	if p.Src.Is6() {
		options = sh.extensions
	}
	f.odd = options > 0 && !memberships(p) && !(p.Proto == igmp && options == 1)
	return f
}
