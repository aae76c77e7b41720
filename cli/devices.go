package cli

import (
	"fmt"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/hostsurvey/placement"
	"headgate.dev/headgate/internal/ifname"
)

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
