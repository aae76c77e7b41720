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

// target is an existing device and its desired state.
type target struct {
	source config.Interface
	plan   shaper.Plan
}

// allDevices returns the names of the devices of this network namespace.
func allDevices() ([]string, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list network devices: %w", err)
	}
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.Name
	}
	slices.Sort(names)
	return names, nil
}

// dev returns the kernel's name of a device that the user named by any of its names. A name of
// no device is returned unchanged.
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

// named resolves the alternative names of devices in a configuration.
func (a *app) named(set config.Set) (config.Set, error) {
	if a.alternatives == nil {
		return set, nil
	}
	alternatives, err := a.alternatives()
	if err != nil {
		return set, fmt.Errorf("cannot list network devices: %w", err)
	}
	return set.WithAltNames(alternatives)
}

// targets returns the devices that a configuration configures. A named device must exist,
// unless leaveOutMissing is true; a pattern matches the devices that exist.
func (a *app) targets(set config.Set, leaveOutMissing bool) ([]target, error) {
	devices, err := a.devices()
	if err != nil {
		return nil, err
	}
	var out []target
	for _, i := range set.Interfaces {
		found := false
		if i.WrittenDev() != i.Dev {
			a.note("%s: %s is the device %s", i.Name(), i.WrittenDev(), i.Dev)
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
			a.note("%s: skipping %s: %v", i.Name(), i.Dev, shaper.ErrNoDevice)
		default:
			return nil, fmt.Errorf("%s: %s: %w: create it first, or set --ignore-missing", i.Name(), i.Dev, shaper.ErrNoDevice)
		}
	}
	return out, nil
}

func planFor(dev string, i config.Interface) shaper.Plan {
	return shaper.Plan{Dev: dev, Perspective: i.Perspective, Overhead: i.Overhead, GSO: i.GSO, Quantum: i.QuantumOptions, Out: i.OutTree, In: i.InTree}
}

// warnSpeeds warns of limits above the link's speed. It compares only hardware devices,
// because the speed that a tap or veth reports is not real.
func (a *app) warnSpeeds(set config.Set) {
	devices, err := a.devices()
	if err != nil {
		return // the limits cannot be compared
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
			warn("out.limit", "%v is more than %s's speed of %v: guarantees cannot be met above the link's speed", i.Out.Limit, dev, speed)
		}
		if i.In != nil && i.In.Limit >= speed {
			warn("in.limit", "%v is not below %s's speed of %v, so the queue forms at the other end of the link and cannot be controlled here: set %v or less", i.In.Limit, dev, speed, speed/100*95)
		}
	}
}

// linkSpeed returns the speed of a device's link, false if the speed is unknown or the
// device is virtual.
func linkSpeed(dev string) (unit.Rate, bool) {
	l, err := netlink.LinkByName(dev)
	if err != nil {
		return 0, false
	}
	return doctor.Speed(l)
}
