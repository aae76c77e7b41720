package shapertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

func applyAndObserve(s *suite) {
	s.do(func() error {
		if _, err := s.engine.Observe(dev); !errors.Is(err, shaper.ErrNotShaped) {
			s.Errorf("observe a device that was never shaped: %v", err)
		}
		return nil
	})
	p := hostPlan(four(s, 100*unit.Mbit), four(s, 50*unit.Mbit))
	s.do(func() error {
		changes, err := s.engine.Diff(p)
		if err == nil && len(changes) == 0 {
			s.Error("Diff finds no changes for an unshaped device")
		}
		if _, err := s.engine.Observe(dev); !errors.Is(err, shaper.ErrNotShaped) {
			s.Errorf("Diff changes something: %v", err)
		}
		return err
	})
	if changes := s.apply(p); !strings.Contains(texts(changes), "out group g1") || !strings.Contains(texts(changes), "in group g4") {
		s.Errorf("changes reported by Apply:%s", texts(changes))
	}
	st := s.observe()
	if !st.Plan.Equal(p) || st.Dev != dev || st.Engine == "" || len(st.Foreign)+len(st.Drift) > 0 || time.Since(st.At) > time.Minute {
		s.Errorf("observed %+v", st)
	}
	for _, in := range []bool{false, true} {
		d, tree := direction(st, in), p.Out
		if in {
			tree = p.In
		}
		if len(d.Groups) != len(tree.Nodes) || len(d.RuleHits) != len(tree.Rules) || d.Assigned != 0 {
			s.Fatalf("observed %+v", d)
		}
		for i, g := range d.Groups {
			n := tree.Nodes[i]
			if g.Path != n.Path || g.Guarantee != n.Guarantee || g.Ceiling != n.Ceiling || g.Class == "" || g.Bytes+g.Packets+g.Drops+g.Marks > 0 {
				s.Errorf("group %d is %+v, of %+v", i, g, n)
			}
		}
	}
	s.clear()
	s.do(func() error {
		if _, err := s.engine.Observe(dev); !errors.Is(err, shaper.ErrNotShaped) {
			s.Errorf("after Clear: %v", err)
		}
		return s.engine.Clear(dev) // a second Clear is not an error
	})
}

func sameWritesNothing(s *suite) {
	p := hostPlan(four(s, 100*unit.Mbit), four(s, 50*unit.Mbit))
	s.apply(p)
	before := snapshot(s, s.server, dev)
	said := watch(s, s.server)
	// The plan again, as it is and as it was read back.
	for _, again := range []shaper.Plan{p, s.observe().Plan} {
		if changes := s.apply(again); len(changes) > 0 {
			s.Errorf("the second Apply changes:%s", texts(changes))
		}
		s.do(func() error {
			changes, err := s.engine.Diff(again)
			if len(changes) > 0 {
				s.Errorf("Diff finds:%s", texts(changes))
			}
			return err
		})
	}
	if m := said(); len(m) > 0 {
		s.Errorf("the kernel reports changes: %v", m)
	}
	if after := snapshot(s, s.server, dev); after != before {
		s.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	p.Out.Nodes[0].Guarantee -= unit.Mbit
	s.apply(p)
	if len(said()) == 0 {
		s.Error("the kernel does not report an actual change: the test is not valid")
	}
}

// classes returns the class IDs by group.
func classes(st shaper.State) map[string]string {
	out := map[string]string{}
	for _, in := range []bool{false, true} {
		for _, g := range direction(st, in).Groups {
			out[fmt.Sprint(in, " ", g.Path)] = g.Class
		}
	}
	return out
}

// oneGroupChanges: while one group is changed repeatedly, another group loses no packets, and
// its counters continue.
func oneGroupChanges(s *suite) {
	both(s, func(s *suite, in bool) {
		// Other load on the processor can also cause losses.
		labtest.Try(s.t, func(t *labtest.Check) {
			tried := *s
			tried.TB = t
			oneGroupOf(&tried, in)
		})
	})
}

func oneGroupOf(s *suite, in bool) {
	p := onePlan(four(s, 50*unit.Mbit), in)
	tree := p.Out
	if in {
		tree = p.In
	}
	s.apply(p)
	before := classes(s.observe())
	from, to := "server", "client"
	if in {
		from, to = to, from
	}
	session, err := traffic.Start(s.Context(), s.lab.Host, []traffic.Flow{{
		Name: "g2", From: from, To: to, Protocol: traffic.UDP, DstPort: 5002, Schedule: traffic.Constant(steady),
	}}, traffic.Options{})
	if err != nil {
		s.Fatal(err)
	}
	var last uint64
	for i := range 10 {
		tree.Nodes[3].Guarantee = unit.Rate(10+i%2) * unit.Mbit
		changes := s.apply(p)
		if text := texts(changes); !strings.Contains(text, "group g4") || strings.Contains(text, "remove") || strings.Contains(text, "add") {
			s.Errorf("change %d:%s", i, text)
		}
		time.Sleep(50 * time.Millisecond)
		st := s.observe()
		d := direction(st, in)
		if got := find(s, d, "g4").Guarantee; got != tree.Nodes[3].Guarantee || len(st.Drift) > 0 {
			s.Errorf("change %d: g4 has %v, want %v; drift%s", i, got, tree.Nodes[3].Guarantee, texts(st.Drift))
		}
		if after := classes(st); fmt.Sprint(after) != fmt.Sprint(before) {
			s.Errorf("change %d: class ids were %v and are %v", i, before, after)
		}
		g2 := find(s, d, "g2")
		if g2.Bytes <= last {
			s.Errorf("change %d: g2's counter went from %d to %d", i, last, g2.Bytes)
		}
		last = g2.Bytes
	}
	session.Stop()
	if f := session.Wait().Flow("g2"); f.Total.LostDatagrams > 0 || f.Error != "" || f.Total.Datagrams < 100 {
		s.Errorf("of g2's %d datagrams, %d were lost: %s", f.Total.Datagrams, f.Total.LostDatagrams, f.Error)
	}
	s.clear()
}

// groupsComeAndGo: groups that stay keep their class IDs, and the counters of a new group start
// at zero, also if its class was used before.
func groupsComeAndGo(s *suite) {
	tree := func(names ...string) *group.Tree {
		var groups []group.Group
		for _, n := range names {
			groups = append(groups, percent(n, 10, 6000+uint16(n[0])))
		}
		return resolve(s, 100*unit.Mbit, groups...)
	}
	send := newSender(s, s.server, dev)
	seen := map[string]string{}
	for _, names := range []string{"abcd", "acd", "acde", "e", "ebcda", "x", "xyz", "abcdefgh"} {
		list := strings.Split(names, "")
		changes := s.apply(hostPlan(tree(list...), nil))
		st := s.observe()
		if len(st.Drift) > 0 {
			s.Errorf("%s: drift%s", names, texts(st.Drift))
		}
		used := map[string]string{}
		for _, g := range st.Out.Groups {
			if other, twice := used[g.Class]; twice {
				s.Errorf("%s: %s and %s have the class %s", names, other, g.Path, g.Class)
			}
			used[g.Class] = g.Path
			was, stays := seen[g.Path]
			if stays && was != g.Class {
				s.Errorf("%s: %s's class was %s and is %s", names, g.Path, was, g.Class)
			}
			if !stays && (g.Packets > 0 || g.Bytes > 0) {
				s.Errorf("%s: the counter of the new group %s is %d packets%s", names, g.Path, g.Packets, texts(changes))
			}
		}
		for path := range seen {
			if !slices.Contains(list, path) {
				delete(seen, path)
			}
		}
		for _, g := range st.Out.Groups {
			seen[g.Path] = g.Class
			send.send(s, build(group.Packet{Proto: group.UDP, Src: v4("10.0.1.2"), Dst: v4("10.0.0.1"), SPort: 1, DPort: uint16(6000) + uint16(g.Path[0])}, shape{payload: 20}))
		}
		eventually(s, 2*time.Second, func() string {
			for _, g := range s.observe().Out.Groups {
				if g.Packets == 0 {
					return fmt.Sprintf("%s: group %s has counted nothing", names, g.Path)
				}
			}
			return ""
		})
	}
}

func assignLive(s *suite) {
	both(s, func(s *suite, in bool) {
		tree := resolve(s, 100*unit.Mbit, percent("rest", 30, 0), percent("vip", 30, 1))
		s.apply(onePlan(tree, in))
		from, to := "server", "client"
		if in {
			from, to = to, from
		}
		session, err := traffic.Start(s.Context(), s.lab.Host, []traffic.Flow{
			{Name: "tcp", From: from, To: to, Protocol: traffic.TCP, Schedule: traffic.Constant(8 * unit.Mbit)},
			{Name: "tcp6", From: from, To: to, Protocol: traffic.TCP, IPv6: true, Schedule: traffic.Constant(8 * unit.Mbit)},
		}, traffic.Options{})
		if err != nil {
			s.Fatal(err)
		}
		var conns []shaper.Conn
		for _, name := range []string{"tcp", "tcp6"} {
			a, b, err := session.Conn(name)
			if err != nil {
				s.Fatal(err)
			}
			conns = append(conns, shaper.Conn{Proto: group.TCP, A: a, B: b})
		}
		moved := func(from, to string, assigned int) {
			s.Helper()
			time.Sleep(20 * time.Millisecond) // packets in the queue of the old group
			before := direction(s.observe(), in)
			time.Sleep(200 * time.Millisecond)
			after := direction(s.observe(), in)
			left := find(s, after, from).Bytes - find(s, before, from).Bytes
			got := find(s, after, to).Bytes - find(s, before, to).Bytes
			// 16 Mbit/s in 200 ms are 400 KB.
			if left > 0 || got < 200_000 || after.Assigned != assigned {
				s.Errorf("in 200 ms %d bytes went through %s and %d through %s; %d connections are assigned", left, from, got, to, after.Assigned)
			}
		}
		moved("vip", "rest", 0)
		assign := func(to string, c ...shaper.Conn) error {
			var list []shaper.Assignment
			for _, one := range c {
				list = append(list, shaper.Assignment{Conn: one, Group: to})
			}
			return s.server.Do(func() error { return s.engine.Assign(dev, list) })
		}
		if err := assign("nobody", conns[0]); err == nil || !strings.Contains(err.Error(), "nobody") {
			s.Errorf("assign to a group that does not exist: %v", err)
		}
		if err := assign("vip", conns...); err != nil {
			s.Fatal(err)
		}
		moved("rest", "vip", 2)
		if err := assign("rest", conns...); err != nil { // by assignment, not by rule
			s.Fatal(err)
		}
		moved("vip", "rest", 2)
		// The ends in the other order are the same connection.
		if err := assign("vip", shaper.Conn{Proto: group.TCP, A: conns[0].B, B: conns[0].A}, conns[1]); err != nil {
			s.Fatal(err)
		}
		moved("rest", "vip", 2)
		assignedTo := func(want string) {
			s.Helper()
			for _, c := range append([]shaper.Conn{{Proto: group.TCP, A: conns[0].B, B: conns[0].A}}, conns...) {
				var got string
				s.do(func() (err error) { got, err = s.engine.Assigned(dev, c); return err })
				if got != want {
					s.Errorf("%v is assigned to %q, want %q", c, got, want)
				}
			}
		}
		assignedTo("vip")
		// A change of the plan keeps assignments.
		s.apply(onePlan(resolve(s, 90*unit.Mbit, percent("rest", 30, 0), percent("vip", 40, 1), percent("more", 5, 2)), in))
		moved("rest", "vip", 2)
		s.do(func() error { return s.engine.Unassign(dev, conns) })
		assignedTo("")
		moved("vip", "rest", 0)
		err = s.server.Do(func() error { return s.engine.Unassign(dev, conns[:1]) })
		if err == nil || !strings.Contains(err.Error(), conns[0].String()) {
			s.Errorf("second unassign: %v", err)
		}
		for _, g := range direction(s.observe(), in).Groups {
			if g.Drops > 0 {
				s.Errorf("group %s dropped %d packets", g.Path, g.Drops)
			}
		}
		session.Stop()
		for _, f := range session.Wait().Flows {
			// On a busy machine, a late wake-up can look like a tail loss to TCP.
			if f.Error != "" || f.Total.Retransmits > 5 {
				s.Errorf("%s: %d retransmissions, error %q", f.Name, f.Total.Retransmits, f.Error)
			}
		}
		s.clear()
	})
}

// assignRemoved: a connection whose group is removed follows the rules, also after a new group
// got the old one's class ID.
func assignRemoved(s *suite) {
	send := newSender(s, s.server, dev)
	f := build(group.Packet{Proto: group.UDP, Src: v4("10.0.1.2"), Dst: v4("10.0.0.1"), SPort: 7, DPort: 8}, shape{payload: 50})
	conn := shaper.Conn{Proto: group.UDP, A: ap("10.0.1.2:7"), B: ap("10.0.0.1:8")}
	s.apply(hostPlan(resolve(s, unit.Gbit, percent("rest", 10, 0), percent("a", 10, 1)), nil))
	s.do(func() error { return s.engine.Assign(dev, []shaper.Assignment{{Conn: conn, Group: "a"}}) })
	goes := func(to string) {
		s.Helper()
		before := find(s, *s.observe().Out, to).Packets
		for range 10 {
			send.send(s, f)
		}
		eventually(s, time.Second, func() string {
			if d := s.observe().Out; find(s, *d, to).Packets != before+10 {
				return fmt.Sprintf("10 packets should be assigned to %s: %+v", to, d.Groups)
			}
			return ""
		})
	}
	goes("a")
	s.apply(hostPlan(resolve(s, unit.Gbit, percent("rest", 10, 0)), nil))
	goes("rest")
	if n := s.observe().Out.Assigned; n != 0 {
		s.Errorf("%d connections are still assigned", n)
	}
	s.apply(hostPlan(resolve(s, unit.Gbit, percent("rest", 10, 0), percent("b", 10, 1)), nil))
	goes("rest")
}

func guestPerspective(s *suite) {
	p := hostPlan(four(s, unit.Gbit), four(s, unit.Gbit))
	p.Perspective = group.Guest
	s.apply(p)
	for _, in := range []bool{false, true} {
		// Packets that the device receives are the guest's out.
		send, before := s.sender(!in), s.counts(in)
		for range 10 {
			send.send(s, build(group.Packet{Proto: group.UDP, Src: v4("10.9.0.1"), Dst: v4("10.9.0.2"), SPort: 1, DPort: 5003}, shape{payload: 10}))
		}
		eventually(s, time.Second, func() string {
			if got := s.counts(in).minus(before); got.groups["g3"] != 10 {
				return fmt.Sprintf("in=%v: sent 10 packets of g3, counted: %v", in, got)
			}
			return ""
		})
	}
	// Back to the host perspective of the same device.
	p.Perspective = group.Host
	s.apply(p)
	if st := s.observe(); !st.Plan.Equal(p) || len(st.Drift) > 0 {
		s.Errorf("observed %+v, drift%s", st.Plan, texts(st.Drift))
	}
}

func deviceGone(s *suite) {
	const name = "comes-and-goes"
	run := func(args ...string) {
		s.Helper()
		if out, err := s.server.Command(s.Context(), "ip", args...).CombinedOutput(); err != nil {
			s.Fatalf("ip %v: %v\n%s", args, err, out)
		}
	}
	p := hostPlan(four(s, 100*unit.Mbit), four(s, 50*unit.Mbit))
	p.Dev = name
	want := func(what string, err error) {
		s.Helper()
		if !errors.Is(err, shaper.ErrNoDevice) || !strings.Contains(err.Error(), name) {
			s.Errorf("%s without a device: %v", what, err)
		}
	}
	missing := func() {
		s.Helper()
		s.do(func() error {
			_, err := s.engine.Apply(p)
			want("Apply", err)
			_, err = s.engine.Diff(p)
			want("Diff", err)
			_, err = s.engine.Observe(name)
			want("Observe", err)
			want("Assign", s.engine.Assign(name, nil))
			return s.engine.Clear(name)
		})
	}
	pristine := snapshot(s, s.server, dev)
	missing()
	for range 2 {
		run("link", "add", name, "type", "veth", "peer", "name", "other")
		run("link", "set", name, "up")
		run("link", "set", "other", "up")
		s.apply(p)
		s.do(func() error {
			st, err := s.engine.Observe(name)
			if err == nil && (!st.Plan.Equal(p) || len(st.Drift) > 0) {
				s.Errorf("observed %+v", st)
			}
			return err
		})
		run("link", "del", name)
		missing()
		if after := snapshot(s, s.server, dev); after != pristine {
			s.Errorf("before:\n%s\nafter the device was removed:\n%s", pristine, after)
		}
	}
}
