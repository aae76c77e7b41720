package config

import (
	"strconv"
	"strings"

	"headgate.dev/headgate/group"
)

func (d *decoder) match(out *[]group.Selector) func(*node, string) {
	return func(n *node, key string) {
		if n.shape != list {
			// A rule that cannot be parsed still limits the child groups.
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

// selector returns the fields of a rule, or of its exclusion.
func (d *decoder) selector(s *group.Selector) (out []field) {
	for _, f := range group.Fields {
		var none struct{}
		parse := func(text string) (struct{}, error) { return none, f.Parse(s, text) }
		if f.Single {
			out = append(out, field{f.Name, one(d, &none, parse)})
			continue
		}
		var all []struct{}
		out = append(out, field{f.Name, oneOrMore(d, &all, func(text string) ([]struct{}, error) { return nil, f.Parse(s, text) })})
	}
	return out
}

// number parses an unsigned decimal or 0x hexadecimal number. A leading zero does not mean
// octal.
func number(s string, bits int) (uint64, error) {
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		return strconv.ParseUint(hex, 16, bits)
	}
	return strconv.ParseUint(s, 10, bits)
}
