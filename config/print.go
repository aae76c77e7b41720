package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"headgate/group"
)

// Format prints an Interface as a document that reads back the same: Parse gives
// an equal Interface, with what was left out filled in.
func Format(i group.Interface) []byte {
	p := &printer{}
	p.line("kind: Interface")
	p.line("dev: %s", quote(i.Dev))
	if i.Perspective != "" {
		p.line("perspective: %s", quote(string(i.Perspective)))
	}
	if i.Engine != "" {
		p.line("engine: %s", quote(string(i.Engine)))
	}
	if i.Quantum != 0 {
		p.line("quantum: %v", i.Quantum)
	}
	if !i.Step.IsZero() {
		p.line("step: %v", i.Step)
	}
	if i.Overdraft {
		p.line("overdraft: true")
	}
	if i.Overhead != (group.Overhead{}) {
		p.line("overhead: {frame: %v, minimum: %v}", i.Overhead.Frame, i.Overhead.Minimum)
	}
	if i.GSO != "" {
		p.line("gso: %s", quote(string(i.GSO)))
	}
	p.direction("out", i.Out)
	p.direction("in", i.In)
	return []byte(p.String())
}

type printer struct {
	strings.Builder
	indent string
}

func (p *printer) line(format string, args ...any) {
	p.WriteString(p.indent)
	fmt.Fprintf(p, format+"\n", args...)
}

func (p *printer) in(by string, print func()) {
	outer := p.indent
	p.indent += by
	print()
	p.indent = outer
}

func (p *printer) direction(name string, d *group.Direction) {
	if d == nil {
		return
	}
	p.line("%s:", name)
	p.in("  ", func() {
		p.line("limit: %v", d.Limit)
		if d.Spare != "" {
			p.line("spare: %s", quote(string(d.Spare)))
		}
		p.groups(d.Groups)
	})
}

func (p *printer) groups(groups []group.Group) {
	if len(groups) == 0 {
		return
	}
	p.line("groups:")
	for _, g := range groups {
		p.in("  ", func() {
			p.line("- name: %s", quote(g.Name))
			p.in("  ", func() { p.group(g) })
		})
	}
}

func (p *printer) group(g group.Group) {
	if !g.Guarantee.IsZero() {
		p.line("guarantee: %v", g.Guarantee)
	}
	if !g.Ceiling.IsZero() {
		p.line("ceiling: %v", g.Ceiling)
	}
	if g.Priority != 0 {
		p.line("priority: %d", g.Priority)
	}
	if g.Default {
		p.line("default: true")
	}
	if len(g.Join) > 0 {
		p.line("join: [%s]", strings.Join(texts(g.Join, quote), ", "))
	}
	if !g.Each.IsZero() {
		p.line("each: [%s]", strings.ReplaceAll(g.Each.String(), ",", ", "))
	}
	if g.Clients != 0 {
		p.line("clients: %d", g.Clients)
	}
	if len(g.Match) > 0 {
		p.line("match:")
		for _, s := range g.Match {
			p.line("  - {%s}", strings.Join(fieldsOf(s), ", "))
		}
	}
	p.groups(g.Groups)
}

func fieldsOf(s group.Selector) (out []string) {
	add := func(key string, values []string) {
		switch len(values) {
		case 0:
		case 1:
			out = append(out, key+": "+values[0])
		default:
			out = append(out, key+": ["+strings.Join(values, ", ")+"]")
		}
	}
	add("proto", protocols(s.Proto))
	add("src", texts(s.Src, prefixText))
	add("dst", texts(s.Dst, prefixText))
	add("sport", texts(s.SPort, portText))
	add("dport", texts(s.DPort, portText))
	add("dscp", texts(s.DSCP, group.DSCPText))
	add("vlan", texts(s.VLAN, group.Range.String))
	add("pcp", texts(s.PCP, group.Range.String))
	add("mark", texts(s.Mark, group.Mark.String))
	add("smac", texts(s.SMAC, func(m group.MAC) string { return quote(m.String()) }))
	if s.Cgroup != "" {
		add("cgroup", []string{quote(s.Cgroup)})
	}
	for _, n := range s.Not {
		out = append(out, "not: {"+strings.Join(fieldsOf(n), ", ")+"}")
	}
	return out
}

// protocols prints the word icmp where both versions stand together, as that is
// what it reads as; either alone is a number or icmpv6.
func protocols(list []uint8) (out []string) {
	for i := 0; i < len(list); i++ {
		switch {
		case list[i] != group.ICMP:
			out = append(out, group.ProtoName(list[i]))
		case slices.Equal(list[i:min(i+2, len(list))], []uint8{group.ICMP, group.ICMPv6}):
			out = append(out, "icmp")
			i++
		default:
			out = append(out, strconv.Itoa(group.ICMP))
		}
	}
	return out
}

func prefixText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return quote(p.Addr().String())
	}
	return quote(p.String())
}

func portText(p group.PortRange) string { return quote(p.String()) }

func texts[T any](list []T, f func(T) string) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// quote quotes what YAML might read as something else. A text of letters,
// digits and the signs in it stays as it is; a number is text too here.
func quote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
	switch strings.ToLower(s) {
	case "", "null", "-", "---", "...":
		return `"` + s + `"`
	}
	if strings.Trim(s, plain) == "" && !strings.HasPrefix(s, "-") {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
