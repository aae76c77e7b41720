package cli

import (
	"fmt"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/hostsurvey/placement"
	"headgate.dev/headgate/internal/ifname"
	"headgate.dev/headgate/shaper"
)

// target is an existing device and its desired state.
type target struct {
	source config.Interface
	plan   shaper.Plan
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
				out = append(out, target{i, shaper.NewPlan(dev, i.Resolved)})
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

// notes prints notes about a configuration.
func (a *app) notes(list []config.Note) {
	for _, n := range list {
		a.note("%v", n)
	}
}

// warn prints warnings about a configuration.
func (a *app) warn(list []placement.Warning) {
	for _, w := range list {
		a.note("%v", w)
	}
}

// warnPlacement warns of rules that likely match no packets where they are. here is set if the
// documents are for this machine.
func (a *app) warnPlacement(set config.Set, here bool) {
	var m *placement.Machine
	if here && a.machine != nil {
		m = a.machine()
	}
	a.warn(m.Rules(set))
}

// warnBypassed warns if a device is bypassed by traffic that it seems to carry.
func (a *app) warnBypassed(dev string) {
	if a.machine == nil {
		return
	}
	if message := a.machine().Bypassed(dev); message != "" {
		a.note("headgate: warning: %s", message)
	}
}

// warnSpeeds warns of limits above the speed of a link of this machine.
func (a *app) warnSpeeds(set config.Set) {
	if devices, err := a.devices(); err == nil { // else the limits cannot be compared
		a.warn(placement.Speeds(set, devices, a.speed))
	}
}
