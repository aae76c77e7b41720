package shapertest

import (
	"errors"
	"fmt"
	"strings"

	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// tc runs tc commands in the server.
func (s *suite) tc(commands ...string) {
	s.Helper()
	for _, c := range commands {
		labtest.Run(s, s.server, "tc", strings.Fields(c)...)
	}
}

const filter = "protocol all u32 match u32 0 0 classid 7:7"

// ourFilter is the output of tc for Headgate's filter; names of the lab also contain the word.
const ourFilter = "handle 0x1 headgate"

// clearRestores checks that Clear restores the state of the server's devices, as printed by tc
// and ip.
func clearRestores(s *suite) {
	tree := four(s, 100*unit.Mbit)
	check := func(what string, p shaper.Plan) {
		s.Helper()
		before := snapshot(s, s.server, dev)
		s.apply(p)
		if snapshot(s, s.server, dev) == before {
			s.Fatalf("%s: the snapshot does not show the plan in force: the test is not valid", what)
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
	s.apply(hostPlan(tree, nil)) // in is no longer limited
	s.apply(hostPlan(nil, tree)) // now only in is limited
	s.clear()
	if after := snapshot(s, s.server, dev); after != before {
		s.Errorf("after changes: before:\n%s\nafter:\n%s", before, after)
	}
	// Foreign objects stay: an empty clsact, and filters that do not conflict.
	s.tc("qdisc add dev " + dev + " clsact")
	check("with a foreign clsact", hostPlan(tree, tree))
	s.tc("filter add dev " + dev + " egress pref 100 " + filter)
	check("with a filter after Headgate's", hostPlan(tree, nil))
	s.tc("qdisc del dev " + dev + " clsact")

	// A foreign filter that was added to Headgate's clsact keeps the clsact.
	s.apply(hostPlan(tree, nil))
	s.tc("filter add dev "+dev+" ingress pref 100 "+filter, "filter add dev "+dev+" egress pref 100 "+filter)
	if st := s.observe(); len(st.Foreign) == 0 || len(st.Drift) > 0 {
		s.Errorf("Observe reports the foreign filters %q, drift%s", st.Foreign, texts(st.Drift))
	}
	s.clear()
	left := snapshot(s, s.server, dev)
	if strings.Count(left, "pref 100 u32") < 2 || strings.Contains(left, ourFilter) {
		s.Errorf("want two foreign filters, and nothing of Headgate's:\n%s", left)
	}
	s.tc("qdisc del dev " + dev + " clsact")

	// So does a foreign filter with Headgate's preference.
	s.apply(hostPlan(tree, nil))
	labtest.Run(s, s.server, "tc", append(strings.Fields("filter add dev "+dev+" egress pref 1 handle 2 protocol all bpf bytecode"), "1,6 0 0 0,")...)
	s.do(func() error {
		if _, err := s.engine.Apply(hostPlan(tree, nil)); !errors.Is(err, shaper.ErrForeign) || !strings.Contains(err.Error(), "bpf pref 1") {
			s.Errorf("a foreign filter with Headgate's preference and precedence: %v", err)
		}
		return nil
	})
	s.clear()
	left = snapshot(s, s.server, dev)
	if !strings.Contains(left, "pref 1 bpf chain 0 handle 0x2") || strings.Contains(left, ourFilter) {
		s.Errorf("want a foreign filter with Headgate's preference, and nothing of Headgate's:\n%s", left)
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

// foreign adds foreign traffic control to the device. Conflicting objects are rejected by name
// without any change; other objects are left unchanged.
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
		{"an egress filter in Headgate's place", []string{clsact, f("egress", 1)}, "clsact", out, "u32 pref 1"},
		{"an ingress filter in Headgate's place", []string{clsact, f("ingress", 1)}, "clsact", in, "u32 pref 1"},
		{"a shared block at egress", []string{"qdisc add dev " + dev + " egress_block 21 clsact", "filter add block 21 pref 9 " + filter}, "clsact", out, "shared block 21 at egress"},
		{"a shared block at ingress, without filters", []string{"qdisc add dev " + dev + " ingress_block 22 clsact"}, "clsact", in, "shared block 22 at ingress"},
		{"a later egress filter", []string{clsact, f("egress", 9)}, "clsact", 0, "u32 pref 9"},
		{"a later ingress filter", []string{clsact, f("ingress", 9)}, "clsact", 0, "u32 pref 9"},
	}
	if s.f.RootQdisc {
		cases[0].refused = out
	}
	if s.f.EndsIngress {
		cases[len(cases)-1].refused = in
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
					s.Errorf("%s conflicts with a plan for %d: %v, %v", c.name, direction, err, again)
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
		s.clear() // on a device that has only foreign objects
		if after := snapshot(s, s.server, dev); after != before {
			s.Errorf("%s: before:\n%s\nafter clear:\n%s", c.name, before, after)
		}
		s.tc("qdisc del dev " + dev + " " + c.undo)
	}
}
