// Package placement warns of rules and limits that likely have no effect on the device where they
// are (docs/where.md): rules by marks that the firewall sets later, by inner addresses behind NAT, by
// cgroups whose processes are in another network namespace, bridges that traffic bypasses,
// limits above the speed of a link, and cgroups, units and users that connection sets name and that do not exist.
//
// A warning is no mistake in the configuration: package config reports those. The package reads the
// machine, and changes nothing. Where the machine is not known, it warns only of what holds on any
// machine. It prints nothing.
//
// Units: rates in layer-2 bits per second.
package placement
