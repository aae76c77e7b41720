package config

import (
	"fmt"
	"net/netip"
	"strings"

	"headgate.dev/headgate/group"
)

// Format formats an Interface as a document that parses to an equal Interface, with defaults
// filled in.
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
	if g.Tenant != "" {
		p.line("tenant: %s", quote(g.Tenant))
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
	for _, f := range group.Fields {
		values := texts(f.Texts(s), func(t string) string { return quote(bare(t)) })
		switch len(values) {
		case 0:
		case 1:
			out = append(out, f.Name+": "+values[0])
		default:
			out = append(out, f.Name+": ["+strings.Join(values, ", ")+"]")
		}
	}
	for _, n := range s.Not {
		out = append(out, "not: {"+strings.Join(fieldsOf(n), ", ")+"}")
	}
	return out
}

// bare removes the length of a prefix that is a single address.
func bare(text string) string {
	if p, err := netip.ParsePrefix(text); err == nil && p.IsSingleIP() {
		return p.Addr().String()
	}
	return text
}

func texts[T any](list []T, f func(T) string) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// quote quotes text that YAML might interpret differently. Text of letters, digits and the
// plain signs stays unquoted; a number is text too here.
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
