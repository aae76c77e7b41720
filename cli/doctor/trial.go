package doctor

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"

	"headgate/group"
	"headgate/shaper"
	"headgate/unit"
)

// The devices of the trial, in the namespace of our own.
const near, farEnd = "hgtry0", "hgtry1"

// trial lets the engine do all that it does, on a pair of devices.
func trial(e shaper.Shaper) Check {
	return tried("groups on a device", tryEngine(e),
		"the engine made groups in both directions, read them back and removed them",
		"the engine cannot make groups here", "see what else is missing; if nothing is, report it with this text").needed()
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
		err = fmt.Errorf("what was made is not what is read back: %v", state.Drift)
	}
	return errors.Join(err, e.Clear(near), removePair())
}

// simplePlan has two groups a direction, told apart by a rule.
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
	return shaper.Plan{Dev: dev, Perspective: r.Perspective, Overhead: r.Overhead, Quantum: r.QuantumOptions, Out: r.OutTree, In: r.InTree}, nil
}

func makePair() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = near
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: farEnd, PeerTxQLen: -1}); err != nil {
		return fmt.Errorf("cannot make a pair of devices to try on (kernel option CONFIG_VETH): %w", err)
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
