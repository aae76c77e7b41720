package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"headgate/group"
)

func (d *decoder) match(out *[]group.Selector) func(*node, string) {
	return func(n *node, key string) {
		if n.shape != list {
			// A rule that cannot be read still bounds the group's children.
			*out = append(*out, group.Selector{})
		}
		d.each(n, key, "a rule", func(n *node, key string) {
			var s group.Selector
			d.fields(n, key, "a rule", append(d.selector(&s), field{"not", func(n *node, key string) {
				var not group.Selector
				d.fields(n, key, "not", d.selector(&not))
				s.Not = []group.Selector{not}
			}}))
			*out = append(*out, s)
		})
	}
}

// selector are the fields of a rule, and of what it excludes.
func (d *decoder) selector(s *group.Selector) []field {
	return []field{
		{"proto", oneOrMore(d, &s.Proto, group.ParseProto)},
		{"src", oneOrMore(d, &s.Src, single(prefix))},
		{"dst", oneOrMore(d, &s.Dst, single(prefix))},
		{"sport", oneOrMore(d, &s.SPort, single(group.ParsePortRange))},
		{"dport", oneOrMore(d, &s.DPort, single(group.ParsePortRange))},
		{"dscp", oneOrMore(d, &s.DSCP, single(group.ParseDSCPRange))},
		{"vlan", oneOrMore(d, &s.VLAN, single(group.ParseVLAN))},
		{"pcp", oneOrMore(d, &s.PCP, single(group.ParsePCP))},
		{"mark", oneOrMore(d, &s.Mark, single(group.ParseMark))},
		{"smac", oneOrMore(d, &s.SMAC, single(group.ParseMAC))},
		{"cgroup", one(d, &s.Cgroup, text[string])},
	}
}

func single[T any](parse func(string) (T, error)) func(string) ([]T, error) {
	return func(s string) ([]T, error) {
		v, err := parse(s)
		return []T{v}, err
	}
}

// prefix reads "10.0.0.0/8" or a bare address. Bits beyond the prefix are
// refused, because half of those who write 10.1.2.3/8 mean the address.
func prefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		switch {
		case a.Zone() != "":
			return netip.Prefix{}, fmt.Errorf("%q names an interface, which no packet does: write %v", s, a.WithZone(""))
		case a.Is4In6():
			return netip.Prefix{}, fmt.Errorf("%q is an IPv4 address in IPv6 dress, which is not sent on a link: write %v", s, a.Unmap())
		}
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, fmt.Errorf("%q is not an address or prefix: write for example 10.0.0.0/8, 192.0.2.1 or fd00::/8", s)
	}
	if p.Addr().Is4In6() {
		return p, fmt.Errorf("%q is an IPv4 prefix in IPv6 dress, which is not sent on a link: write it as IPv4", s)
	}
	if m := p.Masked(); m != p {
		return p, fmt.Errorf("%q has bits beyond its prefix: write %v for the network, or %v for the one address", s, m, p.Addr())
	}
	return p, nil
}

// number reads decimal or 0x hexadecimal, unsigned. A leading zero is no octal.
func number(s string, bits int) (uint64, error) {
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		return strconv.ParseUint(hex, 16, bits)
	}
	return strconv.ParseUint(s, 10, bits)
}
