package config

import (
	"fmt"
	"net/netip"
	"slices"

	"headgate.dev/headgate/relay"
)

// checkRelay reports what of an agent cannot work: exits of which only one would be used, and streams or connections
// that would be relayed themselves.
func (d *decoder) checkRelay(n *node, p relay.Policy) {
	for _, address := range p.Accept.Addresses() {
		listen, err := netip.ParseAddrPort(address)
		if err != nil || listen.Addr().IsUnspecified() {
			continue
		}
		if in, contains := prefixOf(p.Accept.Destinations, listen.Addr()); contains {
			d.invalid(n, "accept.destinations", "%s contains the address %s at which the exit itself accepts streams, which could be relayed: leave it out of the prefix", in, listen.Addr())
			break
		}
	}
	for i, e := range p.Exits {
		key := fmt.Sprintf("exits[%d]", i)
		for _, at := range e.Addresses() {
			if in, contains := prefixOf(p.Accept.Destinations, at); contains && !d.broken["accept.destinations"] {
				d.invalid(n, "accept.destinations", "%s contains %s, the address of %s: agents could relay through each other in a loop: leave it out of the prefix", in, at, key)
			}
		}
		for j, o := range p.Exits[:i] {
			if e.Address.IsValid() && e.Address == o.Address {
				d.invalid(n, key+".address", "%s is the address of exits[%d] too: write one exit with the destinations and paths of both", e.Address, j)
			}
			for _, prefix := range e.Destinations {
				if _, same := find(o.Destinations, func(other netip.Prefix) bool { return other == prefix }); same {
					d.invalid(n, key+".destinations", "%s is a destination of exits[%d] too, which gets all connections to it: remove it from one of them", prefix, j)
				}
			}
		}
	}
	for i, f := range p.Forwards {
		if j, loop := find(p.Forwards, func(o relay.Forward) bool { return o.Listen == f.To.String() && !f.To.Addr().IsLoopback() }); loop {
			d.invalid(n, fmt.Sprintf("forward[%d].to", i), "%s is the address at which forward[%d] of this agent listens, so that connections would be relayed twice, or in a loop: write the address of a server", f.To, j)
		}
	}
}

// checkExit reports paths that are the same, and destinations through which the streams to the exit would be relayed.
func (d *decoder) checkExit(n *node, key string, e relay.Exit) {
	for i, p := range e.Paths {
		if j, same := find(e.Paths[:i], func(o relay.Path) bool { return selection(e, o) == selection(e, p) }); same {
			d.invalid(n, fmt.Sprintf("%s.paths[%d]", key, i), "the path is selected as paths[%d] is: write another address, source, device or mark", j)
		}
	}
	for _, at := range e.Addresses() {
		if in, contains := prefixOf(e.Destinations, at); contains && !d.broken[key+".destinations"] {
			d.invalid(n, key+".destinations", "%s contains %s, an address of the exit itself, to which the streams go: leave it out of the prefix", in, at)
		}
	}
}

// pathSelection is what selects a path.
type pathSelection struct {
	address netip.AddrPort
	source  netip.Addr
	device  string
	mark    uint32
}

// selection returns what selects a path of an exit.
func selection(e relay.Exit, p relay.Path) pathSelection {
	return pathSelection{e.AddressOf(p), p.Source, p.Device, p.Mark}
}

func prefixOf(all []netip.Prefix, a netip.Addr) (netip.Prefix, bool) {
	n, contains := find(all, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
	if !contains {
		return netip.Prefix{}, false
	}
	return all[n], true
}

// find returns the index of the first item for which is is true.
func find[T any](all []T, is func(T) bool) (int, bool) {
	n := slices.IndexFunc(all, is)
	return n, n >= 0
}

// checkRelays reports agents with the same name, and pairs of agents that are each other's exit for the same
// addresses: what one carries to the other, the other would carry back.
func (l *loader) checkRelays() {
	wrong := func(r Relay, key, format string, args ...any) {
		at := (&decoder{places: r.places}).place(key, position{line: r.Line, column: 1})
		l.mistakes = append(l.mistakes, Error{r.File, at.line, at.column, key, fmt.Sprintf(format, args...)})
	}
	for n, r := range l.set.Relays {
		for _, o := range l.set.Relays[:n] {
			if r.Name == o.Name && r.Name != "" {
				wrong(r, "name", "%q is already the name of the relay agent at %s:%d: names must be unique", r.Name, o.File, o.Line)
			}
			for i, e := range r.Exits {
				if j, both := find(o.Exits, func(back relay.Exit) bool {
					return accepts(o, e) && accepts(r, back) && overlap(e.Destinations, back.Destinations)
				}); both {
					wrong(r, fmt.Sprintf("exits[%d].destinations", i), "%s is the exit of %s for some of these addresses, and exits[%d] at %s:%d is the other way round, so that connections would go round in a loop: remove these addresses from one of them", o.Name, r.Name, j, o.File, o.Line)
				}
			}
		}
	}
}

// accepts reports whether an agent listens at the address of an exit.
func accepts(r Relay, e relay.Exit) bool {
	return e.Address.IsValid() && slices.Contains(r.Accept.Addresses(), e.Address.String())
}

func overlap(a, b []netip.Prefix) bool {
	return slices.ContainsFunc(a, func(p netip.Prefix) bool { return slices.ContainsFunc(b, p.Overlaps) })
}
