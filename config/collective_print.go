package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/collective"
)

// FormatCollective formats a connection set as a document that parses to the same set.
func FormatCollective(c collective.Policy) []byte {
	p := &printer{}
	p.line("kind: Collective")
	p.line("name: %s", quote(c.Name))
	if c.Cgroup != "" {
		p.line("cgroup: %s", quote(c.Cgroup))
	}
	if c.Unit != "" {
		p.line("unit: %s", quote(c.Unit))
	}
	if len(c.Rules) > 0 {
		p.line("match:")
		for _, r := range c.Rules {
			p.line("  - {%s}", strings.Join(ruleFields(r), ", "))
		}
	}
	if len(c.Join) > 0 {
		var names []string
		for _, name := range c.Join {
			names = append(names, quote(name))
		}
		p.line("join: [%s]", strings.Join(names, ", "))
	}
	if c.PerDestination {
		p.line("per: destination")
	}
	if c.PerBottleneck {
		p.line("per: bottleneck")
	}
	if c.Bottleneck != "" {
		p.line("bottleneck: %s", quote(c.Bottleneck))
		p.line("weight: %s", strconv.FormatFloat(c.SetWeight, 'g', -1, 64))
	}
	if c.PaperControl {
		p.line("law: seed")
	}
	return []byte(p.String())
}

func ruleFields(r collective.Rule) (out []string) {
	ports := func(p collective.Ports) string {
		if p.From == p.To {
			return strconv.Itoa(int(p.From))
		}
		return fmt.Sprintf("%d-%d", p.From, p.To)
	}
	if r.Local.IsValid() {
		out = append(out, "src: "+quote(bare(r.Local.String())))
	}
	if r.Remote.IsValid() {
		out = append(out, "dst: "+quote(bare(r.Remote.String())))
	}
	if r.LocalPort != (collective.Ports{}) {
		out = append(out, "sport: "+ports(r.LocalPort))
	}
	if r.RemotePort != (collective.Ports{}) {
		out = append(out, "dport: "+ports(r.RemotePort))
	}
	if r.Weight > 0 {
		out = append(out, "weight: "+strconv.FormatFloat(r.Weight, 'g', -1, 64))
	}
	return out
}

// SortPolicies sorts sets that come from no file: sets with rules come before sets that take all
// connections of their cgroup or unit, and then by name.
func SortPolicies(sets []collective.Policy) {
	slices.SortFunc(sets, func(a, b collective.Policy) int {
		return cmp.Or(cmp.Compare(min(len(b.Rules), 1), min(len(a.Rules), 1)), strings.Compare(a.Name, b.Name))
	})
}
