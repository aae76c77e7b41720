package shapertest

import (
	"errors"
	"fmt"
	"strings"

	"headgate/lab/labtest"
	"headgate/shaper"
	"headgate/unit"
)

// tc runs tc commands in the server.
func (s *suite) tc(commands ...string) {
	s.Helper()
	for _, c := range commands {
		labtest.Run(s, s.server, "tc", strings.Fields(c)...)
	}
}

const filter = "protocol all u32 match u32 0 0 classid 7:7"

// ourFilter is how tc prints one of ours: the lab's own names have the word too.
const ourFilter = "handle 0x1 headgate"

// clearRestores holds everything that tc and ip print of the server's devices to
// what it was before.
func clearRestores(s *suite) {
	tree := four(s, 100*unit.Mbit)
	check := func(what string, p shaper.Plan) {
		s.Helper()
		before := snapshot(s, s.server, dev)
		s.apply(p)
		if snapshot(s, s.server, dev) == before {
			s.Fatalf("%s: nothing shows that a plan is in force: this test proves nothing", what)
		}
		s.clear()
		if after := snapshot(s, s.server, dev); after != before {
			s.Errorf("%s: before:\n%s\nafter:\n%s", what, before, after)
		}
	}
	check("out", hostPlan(tree, nil))
	check("in", hostPlan(nil, tree))
	check("both", hostPlan(tree, tree))
	before := snapshot(s, s.server, dev)
	s.apply(hostPlan(tree, tree))
	s.apply(hostPlan(tree, nil)) // in is limited no more
	s.apply(hostPlan(nil, tree)) // and now only in is
	s.clear()
	if after := snapshot(s, s.server, dev); after != before {
		s.Errorf("after changes: before:\n%s\nafter:\n%s", before, after)
	}
	// What others made stays: an empty clsact, and filters that are in no way.
	s.tc("qdisc add dev " + dev + " clsact")
	check("with a clsact that is not ours", hostPlan(tree, tree))
	s.tc("filter add dev " + dev + " egress pref 100 " + filter)
	check("with a filter behind ours", hostPlan(tree, nil))
	s.tc("qdisc del dev " + dev + " clsact")

	// A filter that came while the clsact was ours keeps it.
	s.apply(hostPlan(tree, nil))
	s.tc("filter add dev "+dev+" ingress pref 100 "+filter, "filter add dev "+dev+" egress pref 100 "+filter)
	if st := s.observe(); len(st.Foreign) == 0 || len(st.Drift) > 0 {
		s.Errorf("of filters that are not ours Observe tells %q, drift%s", st.Foreign, texts(st.Drift))
	}
	s.clear()
	left := snapshot(s, s.server, dev)
	if strings.Count(left, "pref 100 u32") < 2 || strings.Contains(left, ourFilter) {
		s.Errorf("two filters of others should be left, and nothing of ours:\n%s", left)
	}
	s.tc("qdisc del dev " + dev + " clsact")

	// The kernel's default for a device with several queues.
	run := func(args ...string) { s.Helper(); labtest.Run(s, s.server, "ip", args...) }
	run("link", "add", "multi", "numtxqueues", "4", "type", "ifb")
	run("link", "set", "multi", "up")
	before = snapshot(s, s.server, "multi")
	if !strings.Contains(before, "qdisc mq 0: dev multi") {
		s.Fatalf("the kernel's default for several queues is not mq:\n%s", before)
	}
	p := hostPlan(tree, nil)
	p.Dev = "multi"
	s.apply(p)
	s.do(func() error { return s.engine.Clear("multi") })
	if after := snapshot(s, s.server, "multi"); after != before {
		s.Errorf("a device with several queues: before:\n%s\nafter:\n%s", before, after)
	}
}

// foreign puts other people's traffic control on the device. What is in the way
// is named and refused, and nothing is changed; what is not is left alone.
func foreign(s *suite) {
	const out, in, both = 1, 2, 3
	f := func(hook string, pref int) string {
		return fmt.Sprintf("filter add dev %s %s pref %d %s", dev, hook, pref, filter)
	}
	clsact := "qdisc add dev " + dev + " clsact"
	cases := []struct {
		name     string
		commands []string
		undo     string
		refused  int
		words    string
	}{
		{"root qdisc", []string{"qdisc add dev " + dev + " root handle 7: tbf rate 1gbit burst 64k limit 1m"}, "root", 0, "tbf 7:"},
		{"ingress qdisc", []string{"qdisc add dev " + dev + " ingress"}, "ingress", both, "ingress"},
		{"an egress filter in our place", []string{clsact, f("egress", 1)}, "clsact", out, "u32 pref 1"},
		{"an ingress filter in our place", []string{clsact, f("ingress", 1)}, "clsact", in, "u32 pref 1"},
		{"a later egress filter", []string{clsact, f("egress", 9)}, "clsact", 0, "u32 pref 9"},
		{"a later ingress filter", []string{clsact, f("ingress", 9)}, "clsact", 0, "u32 pref 9"},
	}
	if s.f.RootQdisc {
		cases[0].refused = out
	}
	if s.f.EndsIngress {
		cases[5].refused = in
	}
	tree := four(s, 100*unit.Mbit)
	for _, c := range cases {
		s.tc(c.commands...)
		before := snapshot(s, s.server, dev)
		for direction, p := range map[int]shaper.Plan{out: hostPlan(tree, nil), in: hostPlan(nil, tree), both: hostPlan(tree, tree)} {
			err := s.server.Do(func() error { _, err := s.engine.Diff(p); return err })
			again := s.server.Do(func() error { _, err := s.engine.Apply(p); return err })
			if c.refused&direction == 0 {
				if err != nil || again != nil {
					s.Errorf("%s is in the way of a plan for %d: %v, %v", c.name, direction, err, again)
				}
				s.clear()
			} else {
				for _, err := range []error{err, again} {
					if !errors.Is(err, shaper.ErrForeign) || !strings.Contains(err.Error(), c.words) || !strings.Contains(err.Error(), dev) {
						s.Errorf("%s, plan for %d: %v", c.name, direction, err)
					}
				}
			}
			if after := snapshot(s, s.server, dev); after != before {
				s.Errorf("%s, plan for %d: before:\n%s\nafter:\n%s", c.name, direction, before, after)
			}
		}
		s.clear() // on a device that has only what is not ours
		if after := snapshot(s, s.server, dev); after != before {
			s.Errorf("%s: before:\n%s\nafter clear:\n%s", c.name, before, after)
		}
		s.tc("qdisc del dev " + dev + " " + c.undo)
	}
}
