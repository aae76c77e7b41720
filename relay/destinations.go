package relay

import "net/netip"

// DestinationsOf returns prefixes that contain an address if ExitFor gives it one of the exits for which in is true.
func (p Policy) DestinationsOf(in func(exit int) bool) (out []netip.Prefix) {
	var others []netip.Prefix
	for n, e := range p.Exits {
		if !in(n) {
			others = append(others, e.Destinations...)
		}
	}
	for n, e := range p.Exits {
		if !in(n) {
			continue
		}
		for _, d := range e.Destinations {
			var holes []netip.Prefix
			for _, o := range others {
				if o.Bits() > d.Bits() && d.Contains(o.Addr()) {
					holes = append(holes, o)
				}
			}
			out = append(out, without(d, holes)...)
		}
	}
	return out
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
