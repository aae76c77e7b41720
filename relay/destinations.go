package relay

import (
	"net/netip"
	"slices"
)

// ExitFor returns the index of the exit for a destination, by the longest prefix, -1 if there is none. Of two prefixes
// with the same length, a configured one wins over one that was announced, and else the first.
func (p Policy) ExitFor(to netip.Addr) int {
	best, bits := -1, -1
	to = to.Unmap()
	contains := func(d netip.Prefix) bool { return d.Contains(to) }
	kept := slices.ContainsFunc(p.keptDirect(), contains)
	for n, e := range p.Exits {
		if e.Announced && kept {
			continue
		}
		for _, d := range e.Destinations {
			if contains(d) && (d.Bits() > bits || d.Bits() == bits && p.Exits[best].Announced && !e.Announced) {
				best, bits = n, d.Bits()
			}
		}
	}
	return best
}

// HasAnnounced reports whether an exit announces its destinations.
func (p Policy) HasAnnounced() bool {
	return slices.ContainsFunc(p.Exits, func(e Exit) bool { return e.Announced })
}

// keptDirect returns the destinations that are not relayed because an exit announces them: where the streams to exits
// go, and what this agent is itself the exit for, so that two agents do not relay to each other in a loop.
func (p Policy) keptDirect() (all []netip.Prefix) {
	if !p.HasAnnounced() {
		return nil
	}
	for _, e := range p.Exits {
		for _, a := range e.Addresses() {
			a = a.Unmap()
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return append(all, p.Accept.Destinations...)
}

// Addresses returns the addresses to which the streams to an exit go.
func (e Exit) Addresses() (out []netip.Addr) {
	if e.Address.IsValid() {
		out = append(out, e.Address.Addr())
	}
	for _, p := range e.Paths {
		if p.Address.IsValid() && p.Address.Addr() != e.Address.Addr() {
			out = append(out, p.Address.Addr())
		}
	}
	return out
}

// part is a part of a destination of an exit.
type part struct {
	netip.Prefix
	exit, bits int // of the whole destination
}

// DestinationsOf returns prefixes that contain an address if ExitFor gives it one of the exits for which in is true.
func (p Policy) DestinationsOf(in func(exit int) bool) (out []netip.Prefix) {
	var parts, others []part
	kept := p.keptDirect()
	for n, e := range p.Exits {
		for _, d := range e.Destinations {
			pieces := []netip.Prefix{d}
			if e.Announced {
				pieces = without(d, kept)
			}
			for _, piece := range pieces {
				if in(n) {
					parts = append(parts, part{piece, n, d.Bits()})
				} else {
					others = append(others, part{piece, n, d.Bits()})
				}
			}
		}
	}
	for _, one := range parts {
		var holes []netip.Prefix
		for _, o := range others {
			if o.Overlaps(one.Prefix) && p.precedes(o, one) {
				holes = append(holes, o.Prefix)
			}
		}
		out = append(out, without(one.Prefix, holes)...)
	}
	return out
}

// precedes reports whether the exit of a is that for the addresses of b, too.
func (p Policy) precedes(a, b part) bool {
	x, y := p.Exits[a.exit].Announced, p.Exits[b.exit].Announced
	return a.bits > b.bits || a.bits == b.bits && (!x && y || x == y && a.exit < b.exit)
}

// without returns prefixes that contain the addresses of p that are in no hole.
func without(p netip.Prefix, holes []netip.Prefix) []netip.Prefix {
	var inside []netip.Prefix
	for _, h := range holes {
		if h.Bits() <= p.Bits() && h.Contains(p.Addr()) {
			return nil
		}
		if p.Contains(h.Addr()) {
			inside = append(inside, h)
		}
	}
	if len(inside) == 0 {
		return []netip.Prefix{p}
	}
	low, high := halves(p)
	return append(without(low, inside), without(high, inside)...)
}

// halves returns the two prefixes that are a bit longer.
func halves(p netip.Prefix) (low, high netip.Prefix) {
	b := p.Addr().AsSlice()
	b[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	a, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(p.Addr(), p.Bits()+1), netip.PrefixFrom(a, p.Bits()+1)
}
