package group

import (
	"net/netip"
	"slices"
)

// Field is one field of selectors: its name, its syntax, the packets that it matches, and the
// combination of two selectors' values. A new selector needs an entry in Fields, a field in
// Selector and Packet, and a place in the classifier's key: docs/adding-a-selector.md.
type Field struct {
	// Name is the key in YAML, JSON and the API.
	Name string
	// Example is a value as a user writes it.
	Example string
	// Connection is set if a connection determines the field, without a packet.
	Connection bool
	// Numeric is set if plain numbers are numbers in JSON.
	Numeric bool
	// Single is set if the field has one value instead of a list.
	Single bool

	operations
}

// operations are the operations on a field, independent of the type of its values.
type operations interface {
	// parse adds a value in the syntax of YAML, and load a value in the JSON of any version.
	parse(s *Selector, text string) error
	load(s *Selector, text string) error
	// texts returns the values as parse reads them.
	texts(s *Selector) []string
	isSet(s *Selector) bool
	equal(a, b *Selector) bool
	// matches reports whether a packet has one of the values.
	matches(s *Selector, p Packet) bool
	// add adds the values of s to those of to.
	add(to, s *Selector)
	// intersect sets out to the values that both a and b match, and returns false if there are
	// none. Its cost is subtracted from left.
	intersect(out, a, b *Selector, left *int) bool
	// excluded reports whether s.Not excludes each value.
	excluded(s *Selector, left *int) bool
}

// Fields lists the fields of a selector, in printing order.
var Fields = []*Field{
	{Name: "proto", Example: "tcp", Connection: true, operations: values[uint8]{
		of:     func(s *Selector) *[]uint8 { return &s.Proto },
		read:   ParseProto,
		write:  protoTexts,
		match:  func(n uint8, p Packet) bool { return p.Link == "" && n == p.Proto },
		common: intersectEqual[uint8],
	}},
	{Name: "src", Example: "10.0.0.0/8", Connection: true, operations: prefixField(
		func(s *Selector) *[]netip.Prefix { return &s.Src }, func(p Packet) netip.Addr { return p.Src })},
	{Name: "dst", Example: "2001:db8::/32", Connection: true, operations: prefixField(
		func(s *Selector) *[]netip.Prefix { return &s.Dst }, func(p Packet) netip.Addr { return p.Dst })},
	{Name: "sport", Example: "443", Connection: true, operations: rangeField(
		func(s *Selector) *[]Range { return &s.SPort }, ParsePortRange, PortRange.String,
		func(p Packet) (uint16, bool) { return p.SPort, p.HasPorts() })},
	{Name: "dport", Example: "8000-8099", Connection: true, operations: rangeField(
		func(s *Selector) *[]Range { return &s.DPort }, ParsePortRange, PortRange.String,
		func(p Packet) (uint16, bool) { return p.DPort, p.HasPorts() })},
	{Name: "dscp", Example: "af11-af13", operations: rangeField(
		func(s *Selector) *[]Range { return &s.DSCP }, ParseDSCPRange, DSCPText,
		func(p Packet) (uint16, bool) { return uint16(p.DSCP), p.Link == "" })},
	{Name: "vlan", Example: "100-199", Numeric: true, operations: rangeField(
		func(s *Selector) *[]Range { return &s.VLAN }, ParseVLAN, Range.String,
		func(p Packet) (uint16, bool) { return p.VLAN, true })},
	{Name: "pcp", Example: "5-7", Numeric: true, operations: rangeField(
		func(s *Selector) *[]Range { return &s.PCP }, ParsePCP, Range.String,
		func(p Packet) (uint16, bool) { return uint16(p.PCP), p.Tagged() })},
	{Name: "mark", Example: "0x4000/0xff00", Numeric: true, operations: values[Mark]{
		of:     func(s *Selector) *[]Mark { return &s.Mark },
		read:   single(ParseMark),
		write:  each(Mark.String),
		match:  func(m Mark, p Packet) bool { return p.Mark&m.Mask == m.Value },
		common: Mark.and,
	}},
	{Name: "smac", Example: "02:00:5e:10:00:01", operations: values[MAC]{
		of:     func(s *Selector) *[]MAC { return &s.SMAC },
		read:   single(ParseMAC),
		write:  each(MAC.String),
		match:  func(m MAC, p Packet) bool { return m.matches(p.SMAC) },
		common: MAC.and,
	}},
	{Name: "cgroup", Example: "system.slice/nginx.service", Single: true, operations: cgroupPath{}},
}

// FieldNamed returns the field with a name, or nil.
func FieldNamed(name string) *Field {
	if i := slices.IndexFunc(Fields, func(f *Field) bool { return f.Name == name }); i >= 0 {
		return Fields[i]
	}
	return nil
}

// Parse adds a value to a selector.
func (f *Field) Parse(s *Selector, text string) error { return f.parse(s, text) }

// Texts returns the values of a selector as Parse reads them, or nil.
func (f *Field) Texts(s Selector) []string { return f.texts(&s) }

// values implements operations for a list of alternatives.
type values[T comparable] struct {
	of   func(*Selector) *[]T
	read func(string) ([]T, error)
	// stored, if set, parses values from the JSON of earlier versions.
	stored func(string) ([]T, error)
	write  func([]T) []string
	match  func(T, Packet) bool
	// common returns the value that matches what both match, and false if there is none.
	common func(a, b T) (T, bool)
	// merge, if set, merges excluded values, so that one of them may contain another.
	merge func([]T) []T
}

func (v values[T]) parse(s *Selector, text string) error { return v.append(s, text, v.read) }

func (v values[T]) load(s *Selector, text string) error {
	if v.stored != nil {
		return v.append(s, text, v.stored)
	}
	return v.parse(s, text)
}

func (v values[T]) append(s *Selector, text string, read func(string) ([]T, error)) error {
	more, err := read(text)
	if err == nil {
		*v.of(s) = append(*v.of(s), more...)
	}
	return err
}

func (v values[T]) texts(s *Selector) []string { return v.write(*v.of(s)) }
func (v values[T]) isSet(s *Selector) bool     { return len(*v.of(s)) > 0 }
func (v values[T]) equal(a, b *Selector) bool  { return slices.Equal(*v.of(a), *v.of(b)) }
func (v values[T]) add(to, s *Selector)        { *v.of(to) = append(*v.of(to), *v.of(s)...) }

func (v values[T]) matches(s *Selector, p Packet) bool {
	return slices.ContainsFunc(*v.of(s), func(one T) bool { return v.match(one, p) })
}

func (v values[T]) intersect(out, a, b *Selector, left *int) bool {
	return intersectLists(v.of(out), *v.of(a), *v.of(b), v.common, left)
}

func (v values[T]) excluded(s *Selector, left *int) bool {
	var not []T
	for n := range s.Not {
		not = append(not, *v.of(&s.Not[n])...)
	}
	if v.merge != nil {
		not = v.merge(not)
	}
	return covered(*v.of(s), not, v.common, left)
}

func prefixField(of func(*Selector) *[]netip.Prefix, address func(Packet) netip.Addr) values[netip.Prefix] {
	return values[netip.Prefix]{
		of:     of,
		read:   single(ParsePrefix),
		stored: single(netip.ParsePrefix),
		write:  each(netip.Prefix.String),
		match:  func(f netip.Prefix, p Packet) bool { return p.Link == "" && f.Contains(address(p)) },
		common: intersectPrefixes,
	}
}

// rangeField returns the operations on ranges of a number of a packet.
func rangeField(of func(*Selector) *[]Range, read func(string) (Range, error), write func(Range) string, number func(Packet) (uint16, bool)) values[Range] {
	return values[Range]{
		of:    of,
		read:  single(read),
		write: each(write),
		match: func(r Range, p Packet) bool {
			n, has := number(p)
			return has && r.Contains(n)
		},
		common: intersectRanges,
		merge:  mergeRanges,
	}
}

func single[T any](parse func(string) (T, error)) func(string) ([]T, error) {
	return func(text string) ([]T, error) {
		v, err := parse(text)
		return []T{v}, err
	}
}

func each[T any](text func(T) string) func([]T) []string {
	return func(list []T) (out []string) {
		for _, v := range list {
			out = append(out, text(v))
		}
		return out
	}
}

// protoTexts formats ICMP followed by ICMPv6 as the word icmp, which means both; either alone
// is a number or icmpv6.
func protoTexts(list []uint8) (out []string) {
	for i := 0; i < len(list); i++ {
		switch {
		case list[i] != ICMP:
			out = append(out, ProtoName(list[i]))
		case i+1 < len(list) && list[i+1] == ICMPv6:
			out = append(out, ProtoName(ICMP))
			i++
		default:
			out = append(out, "1")
		}
	}
	return out
}

// cgroupPath implements operations for the path of a cgroup, which also matches paths below it.
type cgroupPath struct{}

func (cgroupPath) parse(s *Selector, text string) error { s.Cgroup = text; return nil }
func (cgroupPath) load(s *Selector, text string) error  { s.Cgroup = text; return nil }
func (cgroupPath) isSet(s *Selector) bool               { return s.Cgroup != "" }
func (cgroupPath) equal(a, b *Selector) bool            { return a.Cgroup == b.Cgroup }
func (cgroupPath) add(to, s *Selector)                  {} // a selector has one; Selector.Cgroups has all

func (cgroupPath) texts(s *Selector) []string {
	if s.Cgroup == "" {
		return nil
	}
	return []string{s.Cgroup}
}

func (cgroupPath) matches(s *Selector, p Packet) bool {
	return p.Cgroup != "" && Below(p.Cgroup, s.Cgroup)
}

func (cgroupPath) intersect(out, a, b *Selector, _ *int) bool {
	switch {
	case a.Cgroup == "" || Below(b.Cgroup, a.Cgroup):
		out.Cgroup = b.Cgroup
	case b.Cgroup == "" || Below(a.Cgroup, b.Cgroup):
		out.Cgroup = a.Cgroup
	default:
		return false
	}
	return true
}

func (cgroupPath) excluded(s *Selector, _ *int) bool {
	return s.Cgroup != "" && slices.ContainsFunc(s.Not, func(n Selector) bool { return n.Cgroup != "" && Below(s.Cgroup, n.Cgroup) })
}
