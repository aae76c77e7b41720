package fabric

import (
	"fmt"

	"headgate.dev/headgate/unit"
)

// listedRouters checks routers. The switches were checked before, and sites are those that exist.
func (k *configChecker) listedRouters(c Config, sites map[string]string) {
	switches, hosts, names := map[string]bool{}, map[string]string{}, map[DPID]string{}
	for _, s := range c.Switches {
		switches[s.Name] = true
	}
	for i, r := range c.Routers {
		field := fmt.Sprintf("routers[%d]", i)
		other, twice := names[r.ID()]
		names[r.ID()] = r.Name
		switch {
		case r.Name == "":
			k.add(field+".name", "router %d has no name: write one, for example r1", i+1)
			continue
		case switches[r.Name]:
			k.add(field+".name", "router %s is listed as a switch too: remove it from one of the lists, or rename it", r.Name)
			continue
		case twice && other == r.Name:
			k.add(field+".name", "router %s is listed twice: remove one, or rename it", r.Name)
			continue
		case twice:
			k.add(field+".name", "the names %s and %s of routers have the same hash: rename one", other, r.Name)
			continue
		}
		k.switches[r.ID()] = r.Name
		if r.Host == "" {
			k.add(field+".host", "router %s has no agent: write the name of its agent, for example host: %s", r.Name, r.Name)
		} else if other, twice := hosts[r.Host]; twice {
			k.add(field+".host", "routers %s and %s have the same agent %s: correct one", other, r.Name, r.Host)
		}
		hosts[r.Host] = r.Name
		if _, ok := sites[r.Site]; !ok && r.Site != "" {
			k.add(field+".site", "router %s is in site %s, which does not exist: add it to sites, or correct the name", r.Name, r.Site)
		}
	}
}

// routerPort checks that a port of a router is an interface.
func (k *configChecker) routerPort(field, object string, p PortRef) {
	name, listed := k.switches[p.Switch]
	switch {
	case !listed:
		k.add(field, "%s: the router is not listed: add it to routers, or correct the name", object)
	case !p.Port.isInterface():
		k.add(field, "%s: %s is not an interface of a router: write its name, for example %s/eth1", object, p.Port, name)
	}
	id, _ := p.ID()
	if other, ok := k.interfaces[id]; ok && other != p.Port.Name {
		k.add(field, "%s: the names %s and %s of interfaces of router %s have the same hash: rename one", object, other, p.Port.Name, name)
	}
	k.interfaces[id] = p.Port.Name
}

// hostLine checks what is written of the line to a host.
func (k *configChecker) hostLine(field, object string, h HostConfig) {
	if !h.At.Switch.IsRouter() {
		if h.Capacity > 0 && h.At.Switch != 0 {
			k.add(field+".capacity", "%s is at a switch, which reports the speed of its port: remove capacity", object)
		}
		return
	}
	at := k.label(h.At)
	if h.VLAN > 0 {
		k.add(field+".vlan", "%s is at router %s: write the interface of the VLAN, for example at: %s.%d, and remove vlan", object, k.switches[h.At.Switch], at, h.VLAN)
	}
	u := k.use(h.At)
	switch {
	case h.Capacity == 0:
		k.add(field+".capacity", "%s is at router interface %s without a capacity, which a router does not report: write it, for example capacity: 1Gbit", object, at)
	case h.Capacity > unit.MaxRate:
		k.add(field+".capacity", "%s has a capacity of %v: write at most %v", object, h.Capacity, unit.MaxRate)
	case u.line > 0 && u.line != h.Capacity:
		k.add(field+".capacity", "%s has a capacity of %v, and another host at %s one of %v: hosts at one interface share a line; write the same", object, h.Capacity, at, u.line)
	default:
		u.line = h.Capacity
	}
}
