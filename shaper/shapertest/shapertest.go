package shapertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Features describes the differences between engines.
type Features struct {
	// RootQdisc: the engine needs the device's root, so a foreign root qdisc conflicts.
	RootQdisc bool
	// EndsIngress: the engine's ingress filter ends the list of filters, so a later filter
	// conflicts.
	EndsIngress bool
	// Ceilings: the engine supports ceilings and nested groups.
	Ceilings bool
	// Groups is the number of groups per direction in the scale case.
	Groups int
	// Guarantee is the minimum rate of a group under overload, as a fraction of its guarantee
	// in layer-2 bytes; Total is the minimum of all groups together, as a fraction of the
	// limit.
	Guarantee, Total float64
}

// Run runs the suite. engine returns a new engine without state.
func Run(t *testing.T, engine func() shaper.Shaper, f Features) {
	labtest.NeedRoot(t)
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"apply and observe", applyAndObserve},
		{"the same plan writes nothing", sameWritesNothing},
		{"one group changes", oneGroupChanges},
		{"groups are added and removed", groupsComeAndGo},
		{"assign a live connection", assignLive},
		{"assignments to removed groups", assignRemoved},
		{"rules, by real packets", rulesByPackets},
		{"rules, by cgroup", rulesByCgroup},
		{"rules, by fragments", rulesByFragments},
		{"maximum number of rule shapes", manyShapes},
		{"classification matches the reference", likeOracle},
		{"control traffic", controlTraffic},
		{"control traffic is checked", controlIsChecked},
		{floods, controlFlood},
		{"guarantees under overload", guaranteesUnderOverload},
		{"counted bytes match the wire", bytesOnTheWire},
		{"guest perspective", guestPerspective},
		{"a device without a link header", withoutLinkHeader},
		{"clear restores exactly", clearRestores},
		{"foreign traffic control", foreign},
		{"device removed", deviceGone},
		{"works after the process ends", withoutProcess},
		{"killed at every step", killedAtSteps},
		{"killed at any time", killedAnyTime},
	} {
		if c.name == floods && !f.Ceilings {
			continue
		}
		t.Run(c.name, func(t *testing.T) { c.run(newSuite(t, engine, f)) })
	}
}

// floods is the case for engines with ceilings.
const floods = "floods of control traffic"

// dev is the server's device.
const dev = "router"

// suite is the rig of one case.
type suite struct {
	testing.TB
	t      *testing.T
	engine shaper.Shaper
	fresh  func() shaper.Shaper // returns a new engine without state
	f      Features
	lab    *lab.Lab
	server *lab.Node
	router *lab.Node
	client *lab.Node
}

func newSuite(t *testing.T, engine func() shaper.Shaper, f Features) *suite {
	rig := lab.Rig(lab.RigOptions{})
	for i := range rig.Nodes {
		// Otherwise each host repeats its multicast membership reports in the first seconds,
		// which would be counted with the packets of a case.
		rig.Nodes[i].Sysctl = map[string]string{"net.ipv6.conf.default.mldv2_unsolicited_report_interval": "3600000"}
	}
	l := labtest.Up(t, rig)
	return &suite{
		TB: t, t: t, engine: engine(), fresh: engine, f: f, lab: l,
		server: l.Node("server"), router: l.Node("router"), client: l.Node("client"),
	}
}

// do runs fn in the server's namespace, and fails with its error.
func (s *suite) do(fn func() error) {
	s.Helper()
	if err := s.server.Do(fn); err != nil {
		s.Fatal(err)
	}
}

func (s *suite) apply(p shaper.Plan) (out []shaper.Change) {
	s.Helper()
	s.do(func() (err error) { out, err = s.engine.Apply(p); return err })
	return out
}

func (s *suite) observe() (st shaper.State) {
	s.Helper()
	s.do(func() (err error) { st, err = s.engine.Observe(dev); return err })
	return st
}

func (s *suite) clear() {
	s.Helper()
	s.do(func() error { return s.engine.Clear(dev) })
}

// direction returns one direction of a state.
func direction(st shaper.State, in bool) shaper.DirectionState {
	d := st.Out
	if in {
		d = st.In
	}
	if d == nil {
		return shaper.DirectionState{}
	}
	return *d
}

// find returns the state of a group.
func find(t testing.TB, d shaper.DirectionState, path string) shaper.GroupState {
	t.Helper()
	for _, g := range d.Groups {
		if g.Path == path {
			return g
		}
	}
	t.Fatalf("no group %q in %+v", path, d.Groups)
	return shaper.GroupState{}
}

// resolve returns a tree of groups; the first is the default if none is.
func resolve(t testing.TB, limit unit.Rate, groups ...group.Group) *group.Tree {
	t.Helper()
	some := false
	for _, g := range groups {
		some = some || g.Default
	}
	if !some {
		groups[0].Default = true
	}
	tree, problems := group.Direction{Limit: limit, Groups: groups}.Resolve("out", true)
	for _, p := range problems {
		t.Fatal(p)
	}
	return &tree
}

// percent returns a group with a share, for packets to a port (0: no rule).
func percent(name string, p int, dport uint16) group.Group {
	g := group.Group{Name: name, Guarantee: group.Amount{Share: unit.Share(p) * unit.Whole / 100}}
	if dport > 0 {
		g.Match = []group.Selector{{DPort: []group.PortRange{{First: dport, Last: dport}}}}
	}
	return g
}

// four returns the thesis's groups of 10, 20, 30 and 40 %, on ports 5001 to 5004.
func four(t testing.TB, limit unit.Rate) *group.Tree {
	var groups []group.Group
	for i := range 4 {
		groups = append(groups, percent(fmt.Sprintf("g%d", i+1), 10*(i+1), uint16(5001+i)))
	}
	return resolve(t, limit, groups...)
}

func hostPlan(out, in *group.Tree) shaper.Plan {
	return shaper.Plan{Dev: dev, Perspective: group.Host, Out: out, In: in}
}

// both runs a case for out and for in.
func both(s *suite, run func(s *suite, in bool)) {
	for _, in := range []bool{false, true} {
		s.t.Run(map[bool]string{false: "out", true: "in"}[in], func(t *testing.T) {
			sub := *s
			sub.TB, sub.t = t, t
			run(&sub, in)
		})
	}
}

// onePlan returns a plan that limits one direction.
func onePlan(tree *group.Tree, in bool) shaper.Plan {
	if in {
		return hostPlan(nil, tree)
	}
	return hostPlan(tree, nil)
}

// eventually waits until ok returns "", and otherwise fails with the last problem.
func eventually(t testing.TB, within time.Duration, ok func() (problem string)) {
	t.Helper()
	for end := time.Now().Add(within); ; {
		problem := ok()
		if problem == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v: %s", within, problem)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func texts(changes []shaper.Change) string {
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "\n  %v", c)
	}
	return b.String()
}
