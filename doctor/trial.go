package doctor

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// The devices of the trial, in the doctor's network namespace.
const near, farEnd = "hgtry0", "hgtry1"

// trial has the engine apply, read and clear groups on a pair of devices.
func trial(e shaper.Shaper) Check {
	return checkOf("groups on a device", tryEngine(e),
		"the engine created groups in both directions, read their state and removed them",
		"the engine cannot create groups", "see the other checks; if none is missing, report a bug with this text").needed()
}

func tryEngine(e shaper.Shaper) error {
	if err := makePair(); err != nil {
		return err
	}
	p, err := simplePlan(near, unit.Gbit, true, true)
	if err != nil {
		return err
	}
	if _, err := e.Apply(p); err != nil {
		return err
	}
	state, err := e.Observe(near)
	if err == nil && (state.Out == nil || state.In == nil || len(state.Drift) > 0) {
		err = fmt.Errorf("the state differs from the applied plan: %v", state.Drift)
	}
	return errors.Join(err, e.Clear(near), removePair())
}

// simplePlan returns a plan with two groups in each direction, and one rule.
func simplePlan(dev string, limit unit.Rate, out, in bool) (shaper.Plan, error) {
	d := &group.Direction{Limit: limit, Groups: []group.Group{
		{Name: "a", Guarantee: group.Amount{Share: unit.Whole / 2}, Match: []group.Selector{{DPort: []group.PortRange{{First: 9, Last: 9}}}}},
		{Name: "b", Default: true},
	}}
	i := group.Interface{Dev: dev}
	if out {
		i.Out = d
	}
	if in {
		i.In = d
	}
	r, problems := i.Resolve()
	if len(problems) > 0 {
		return shaper.Plan{}, problems[0]
	}
	return shaper.NewPlan(dev, r), nil
}

func makePair() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = near
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: farEnd, PeerTxQLen: -1}); err != nil {
		return fmt.Errorf("cannot create a pair of veth devices (kernel option CONFIG_VETH): %w", err)
	}
	for _, name := range []string{near, farEnd} {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			return fmt.Errorf("cannot set up device %s: %w", name, err)
		}
	}
	return nil
}

func removePair() error {
	l, err := netlink.LinkByName(near)
	if err != nil {
		return err
	}
	return netlink.LinkDel(l)
}
