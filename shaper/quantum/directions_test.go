package quantum

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// rig is a device that is shaped in both directions, and that sends and receives.
//
//	client ── router ── server, with the device towards the router
type rig struct {
	*testing.T
	*lab.Lab
}

func (r rig) do(what string, f func() error) {
	r.Helper()
	if err := r.Node("server").Do(f); err != nil {
		r.Fatalf("%s: %v", what, err)
	}
}

func (r rig) apply(p shaper.Plan) {
	r.Helper()
	r.do("apply", func() error { _, err := New().Apply(p); return err })
}

func (r rig) observe() (st shaper.State) {
	r.Helper()
	r.do("observe", func() (err error) { st, err = New().Observe("router"); return err })
	if len(st.Drift) > 0 {
		r.Errorf("drift: %v", st.Drift)
	}
	return st
}

// send makes both ends send datagrams to a port for some time.
func (r rig) send(port uint16, rate unit.Rate, length time.Duration) {
	r.Helper()
	var flows []traffic.Flow
	for _, ends := range [][2]string{{"server", "client"}, {"client", "server"}} {
		flows = append(flows, traffic.Flow{Name: ends[0], From: ends[0], To: ends[1], Protocol: traffic.UDP, DstPort: port, Schedule: traffic.Constant(rate)})
	}
	if _, err := traffic.Run(r.Context(), r.Host, flows, traffic.Options{Duration: length}); err != nil {
		r.Fatal(err)
	}
}

func tree(t *testing.T, limit unit.Rate, names ...string) *group.Tree {
	t.Helper()
	d := group.Direction{Limit: limit}
	for i, name := range names {
		port := uint16(firstPort + i)
		d.Groups = append(d.Groups, group.Group{
			Name: name, Default: i == 0, Guarantee: group.Amount{Share: unit.Whole / unit.Share(len(names))},
			Match: []group.Selector{{DPort: []group.PortRange{{First: port, Last: port}}}},
		})
	}
	out, problems := d.Resolve("out", true)
	for _, p := range problems {
		t.Fatal(p)
	}
	return &out
}

// TestDirectionsAreIndependent: each direction has its own limits, pool and resets, as the
// source has separate functions for each. A reset of one direction does not affect the other.
func TestDirectionsAreIndependent(t *testing.T) {
	r := rig{t, labtest.Rig(t, lab.RigOptions{})}
	plan := shaper.Plan{
		Dev: "router", Perspective: group.Host, Quantum: group.QuantumOptions{Quantum: 50 * time.Millisecond},
		Out: tree(t, 10*unit.Mbit, "busy", "idle"), In: tree(t, 10*unit.Mbit, "busy", "idle", "in-only"),
	}
	r.apply(plan)
	r.send(firstPort, unit.Mbit, time.Second)
	lent := r.observe()
	// In 20 quanta, each lends 1.5 % of the limit: 30 of the 50 %.
	for name, d := range map[string]*shaper.DirectionState{"out": lent.Out, "in": lent.In} {
		if d.Quantum.PoolBytes == 0 || d.Quantum.Resets != 0 || d.Groups[1].Quantum.Actual > d.Groups[1].Guarantee*7/10 || d.Quantum.Mode != shaper.Normal {
			t.Errorf("%s: after a second at a tenth of the limit: %+v, the idle group %+v", name, *d.Quantum, *d.Groups[1].Quantum)
		}
	}
	conn := func(port uint16) shaper.Conn {
		return shaper.Conn{Proto: group.TCP, A: netip.MustParseAddrPort("10.9.9.1:1"), B: netip.AddrPortFrom(netip.MustParseAddr("10.9.9.2"), port)}
	}
	assign := func(group string, port uint16) {
		t.Helper()
		r.do("assign", func() error { return New().Assign("router", []shaper.Assignment{{Conn: conn(port), Group: group}}) })
	}
	// No packets pass meanwhile. A reset is reported before a packet triggers it, and the
	// packet then resets once, whatever the number of requests.
	resets := func(what string, out, in uint64) {
		t.Helper()
		st := r.observe()
		for name, d := range map[string]*shaper.DirectionState{"out": st.Out, "in": st.In} {
			want := map[string]uint64{"out": out, "in": in}[name]
			reset := d.Quantum.PoolBytes == 0 && d.Groups[1].Quantum.Actual == d.Groups[1].Guarantee
			if d.Quantum.Resets != want || reset != (want > 0) {
				t.Errorf("%s: %s has %d resets, want %d: %+v, the idle group %+v", what, name, d.Quantum.Resets, want, *d.Quantum, *d.Groups[1].Quantum)
			}
		}
	}
	resets("nothing", 0, 0)
	assign("in-only", 1)
	resets("assigned only in", 0, 1)
	r.do("unassign", func() error { return New().Unassign("router", []shaper.Conn{conn(1)}) })
	resets("unassigned", 0, 1)
	changed := plan
	changed.In = tree(t, 20*unit.Mbit, "busy", "idle", "in-only")
	r.apply(changed)
	resets("a new limit in", 0, 1)
	assign("idle", 2)
	resets("assigned in both", 1, 1)

	// The resets are executed with the next packets.
	r.send(firstPort, unit.Mbit, 100*time.Millisecond)
	if st := r.observe(); st.Out.Quantum.Resets != 1 || st.In.Quantum.Resets != 1 {
		t.Errorf("after packets: out has %d resets, in has %d", st.Out.Quantum.Resets, st.In.Quantum.Resets)
	}
}

// TestMode: drops put a group and its direction into enforcement mode, until a quantum without
// drops.
func TestMode(t *testing.T) {
	r := rig{t, labtest.Rig(t, lab.RigOptions{})}
	r.apply(shaper.Plan{
		Dev: "router", Perspective: group.Host, Quantum: group.QuantumOptions{Quantum: 200 * time.Millisecond, Step: group.Step{Bytes: 1500}},
		Out: tree(t, unit.Mbit, "busy", "idle"), In: tree(t, 10*unit.Mbit, "busy", "idle"),
	})
	r.send(firstPort, 3*unit.Mbit, time.Second)
	st := r.observe()
	if q := st.Out.Quantum; q.Mode != shaper.Enforcement || st.Out.Groups[0].Quantum.Mode != shaper.Enforcement || st.Out.Groups[1].Quantum.Mode != shaper.Normal || q.StepBytes != 1500 {
		t.Errorf("out, at three times its limit: %+v, groups %+v and %+v", *q, *st.Out.Groups[0].Quantum, *st.Out.Groups[1].Quantum)
	}
	if q := st.In.Quantum; q.Mode != shaper.Normal {
		t.Errorf("in, at a third of its limit: %+v", *q)
	}
	time.Sleep(500 * time.Millisecond)
	if q := r.observe().Out.Quantum; q.Mode != shaper.Normal {
		t.Errorf("out, two quanta later: %+v", *q)
	}
}

func TestCheckOptions(t *testing.T) {
	p := shaper.Plan{Dev: "eth0", Out: tree(t, unit.Mbit, "a", "b")} // 125,000 bytes a second, 62,500 guaranteed
	for name, c := range map[string]struct {
		options group.QuantumOptions
		key     string
		message string
	}{
		"the paper's step":   {group.QuantumOptions{Step: group.Step{Bytes: 1500}}, "", ""},
		"the maximum":        {group.QuantumOptions{Step: group.Step{Bytes: 62500}}, "", ""},
		"both remedies":      {group.QuantumOptions{Quantum: 100 * time.Millisecond, Overdraft: true}, "", ""},
		"never lends":        {group.QuantumOptions{Step: group.Step{Bytes: 62501}}, "step", "write at most 62500B"},
		"never lends either": {group.QuantumOptions{Step: group.Step{Share: 51 * unit.Whole / 100}}, "step", "exceeds the guarantee of every group per quantum of 1s (62.5kB)"},
		"less than a byte":   {group.QuantumOptions{Step: group.Step{Share: 1}}, "step", "less than a byte"},
		"too short":          {group.QuantumOptions{Quantum: 20 * time.Millisecond}, "quantum", "use a longer quantum"},
	} {
		p.Quantum = c.options
		err := Check(p)
		var key string
		var of *optionError
		if errors.As(err, &of) {
			key = of.Key()
		}
		if (err == nil) != (c.message == "") || err != nil && !strings.Contains(err.Error(), c.message) || key != c.key {
			t.Errorf("%s: %q at %q, want %q at %q", name, err, key, c.message, c.key)
		}
	}
}

// TestDefaults: the documented defaults of the options are those of the algorithm.
func TestDefaults(t *testing.T) {
	cfg, err := share.QuantumForRate(8*unit.Mbit, nil, share.SeedQuantum)
	if err != nil {
		t.Fatal(err)
	}
	if step := (group.Step{Share: group.SeedStep}).Of(unit.Bytes(cfg.Limit)); cfg.Step != uint64(step) || share.SeedQuantum != group.SeedQuantum {
		t.Errorf("documented: %v and a step of %v, in force: %v and %d bytes", group.SeedQuantum, step, share.SeedQuantum, cfg.Step)
	}
}
