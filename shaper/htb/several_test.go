package htb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
)

// TestApplyAll: plans of several devices are applied concurrently, each as it would be alone:
// one fails because of foreign traffic control, one because the device does not exist, and the
// others are in force.
func TestApplyAll(t *testing.T) {
	labtest.NeedRoot(t)
	const many, foreign = 20, 7
	node := labtest.Rig(t, lab.RigOptions{}).Node("server")
	tree, problems := group.Direction{Limit: 20 * unit.Mbit, Groups: []group.Group{{Name: "a", Default: true}}}.Resolve("out", true)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var plans []shaper.Plan
	var devs []string
	for i := range many {
		dev := fmt.Sprint("v", i)
		labtest.Run(t, node, "ip", "link", "add", dev, "type", "veth", "peer", "name", fmt.Sprint("c", i))
		devs = append(devs, dev)
		plans = append(plans, shaper.Plan{Dev: dev, Out: &tree, In: &tree})
	}
	labtest.Run(t, node, "tc", "qdisc", "add", "dev", devs[foreign], "root", "handle", "7:", "tbf", "rate", "1gbit", "burst", "10k", "latency", "10ms")
	devs, plans = append(devs, "none"), append(plans, shaper.Plan{Dev: "none", Out: &tree})
	e := htb.New()
	check := func(err error, want error, what string) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	err := node.Do(func() error {
		for i, a := range e.ApplyAll(plans) {
			switch i {
			case foreign:
				check(a.Err, shaper.ErrForeign, "a device with a foreign qdisc")
			case many:
				check(a.Err, shaper.ErrNoDevice, "no device")
			default:
				check(a.Err, nil, devs[i])
				if len(a.Changes) == 0 {
					t.Errorf("%s: nothing was changed", devs[i])
				}
			}
		}
		for i, o := range e.ObserveAll(devs) {
			switch i {
			case foreign:
				check(o.Err, shaper.ErrNotShaped, "a device with a foreign qdisc")
			case many:
				check(o.Err, shaper.ErrNoDevice, "no device")
			default:
				check(o.Err, nil, devs[i])
				if o.State.Dev != devs[i] || len(o.State.Drift) > 0 || o.State.Out == nil || o.State.In == nil {
					t.Errorf("%s is %+v", devs[i], o.State)
				}
				if o.State.Out.At.IsZero() || o.State.In.At.Equal(o.State.Out.At) {
					t.Errorf("%s was read at %v and %v, want a time of its own per direction", devs[i], o.State.Out.At, o.State.In.At)
				}
			}
		}
		for i, a := range e.ApplyAll(plans[:many]) {
			if i != foreign && (a.Err != nil || len(a.Changes) > 0) {
				t.Errorf("%s, second apply: %v, %v", devs[i], a.Changes, a.Err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// All devices but one are removed, and their IFBs with the next sweep.
	for _, dev := range devs[1:many] {
		labtest.Run(t, node, "ip", "link", "del", dev)
	}
	if err := node.Do(func() error { e.Sweep(); return nil }); err != nil {
		t.Fatal(err)
	}
	if left := labtest.Run(t, node, "ip", "-br", "link", "show", "type", "ifb"); strings.Count(left, group.IFBPrefix) != 1 {
		t.Errorf("%d devices, of which one is left, have the IFBs\n%s", many, left)
	}
}
