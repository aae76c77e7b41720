package cli

import (
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"

	"headgate/cli/doctor"
	"headgate/config"
	"headgate/group"
	"headgate/internal/ifname"
	"headgate/shaper"
	"headgate/unit"
)

// target is one device that exists and what it shall have.
type target struct {
	source config.Interface
	plan   shaper.Plan
}

// allDevices are the devices of this network namespace.
func allDevices() ([]string, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("the devices cannot be listed: %w", err)
	}
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.Name
	}
	slices.Sort(names)
	return names, nil
}

// dev is the kernel's name of the device that a user names, who may write an alternative
// one. What is no device's name stays as it is.
func (a *app) dev(name string) string {
	if a.alternatives == nil {
		return name
	}
	kernel := ifname.Kernel(name)
	if kernel != name {
		a.note("headgate: %s is the device %s", name, kernel)
	}
	return kernel
}

// named takes in a configuration which devices of this machine its documents name.
func (a *app) named(set config.Set) (config.Set, error) {
	if a.alternatives == nil {
		return set, nil
	}
	alternatives, err := a.alternatives()
	if err != nil {
		return set, fmt.Errorf("the devices cannot be listed: %w", err)
	}
	return set.Named(alternatives)
}

// targets finds the devices that a configuration is about: those named must
// exist, unless missing ones are to be left out; patterns take what there is.
func (a *app) targets(set config.Set, leaveOutMissing bool) ([]target, error) {
	devices, err := a.devices()
	if err != nil {
		return nil, err
	}
	var out []target
	for _, i := range set.Interfaces {
		found := false
		if i.Called() != i.Dev {
			a.note("%s: %s is the device %s", i.Name(), i.Called(), i.Dev)
		}
		for _, dev := range devices {
			if owner, ok := set.For(dev); ok && owner.Dev == i.Dev {
				found = true
				out = append(out, target{i, planFor(dev, i)})
			}
		}
		switch {
		case found:
		case group.IsPattern(i.Dev):
			a.note("%s: no device matches %q now", i.Name(), i.Dev)
		case leaveOutMissing:
			a.note("%s: %s is left out: %v", i.Name(), i.Dev, shaper.ErrNoDevice)
		default:
			return nil, fmt.Errorf("%s: %s: %w: bring it up first, or pass --ignore-missing", i.Name(), i.Dev, shaper.ErrNoDevice)
		}
	}
	return out, nil
}

func planFor(dev string, i config.Interface) shaper.Plan {
	return shaper.Plan{Dev: dev, Perspective: i.Perspective, Overhead: i.Overhead, GSO: i.GSO, Quantum: i.QuantumOptions, Out: i.OutTree, In: i.InTree}
}

// warnSpeeds tells of limits that the link cannot give. Only devices with
// hardware behind them are asked: a tap or veth invents its speed.
func (a *app) warnSpeeds(set config.Set) {
	devices, err := a.devices()
	if err != nil {
		return // it is only a warning
	}
	for _, dev := range devices {
		i, ok := set.For(dev)
		if !ok || i.Perspective == group.Guest {
			continue
		}
		speed, known := a.speed(dev)
		if !known {
			continue
		}
		warn := func(key, format string, args ...any) {
			file, line, _ := i.Where(key)
			a.note("%s:%d: %s: warning: %s", file, line, key, fmt.Sprintf(format, args...))
		}
		if i.Out != nil && i.Out.Limit > speed {
			warn("out.limit", "%v is more than %s's speed of %v: guarantees hold only up to what the link gives", i.Out.Limit, dev, speed)
		}
		if i.In != nil && i.In.Limit >= speed {
			warn("in.limit", "%v is not below %s's speed of %v, so the queue is at the other end and nothing can be divided here: write %v or less", i.In.Limit, dev, speed, speed/100*95)
		}
	}
}

// linkSpeed is what the link of a device can carry, false if it is not known or
// invented.
func linkSpeed(dev string) (unit.Rate, bool) {
	l, err := netlink.LinkByName(dev)
	if err != nil {
		return 0, false
	}
	return doctor.Speed(l)
}
