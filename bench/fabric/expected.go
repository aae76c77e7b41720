package fabric

import (
	"fmt"
	"slices"
	"strings"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench/inmemory"
	"headgate.dev/headgate/lab"
)

// expected is what is known of a network: switches by id, links as "FROM->TO" for each direction, and ports of hosts. Ports are
// the id of the switch, a slash, and the number.
type expected struct {
	Switches map[string]bool `json:"switches"`
	Links    map[string]bool `json:"links"`
	Hosts    map[string]bool `json:"hosts"`
}

func newExpected() expected { return expected{map[string]bool{}, map[string]bool{}, map[string]bool{}} }

func portOf(id uint64, no uint32) string { return fmt.Sprintf("%016x/%d", id, no) }

// cable adds a cable between two ports.
func (e expected) cable(a, b string) { e.Links[a+"->"+b], e.Links[b+"->"+a] = true, true }

// expectedOf returns what a lab has.
func expectedOf(t *lab.Topology) expected {
	e := newExpected()
	ends := map[string][]string{} // by link
	for _, d := range t.Devices() {
		if d.DatapathID == "" {
			continue
		}
		at := fmt.Sprintf("%s/%d", d.DatapathID, d.Port)
		e.Switches[d.DatapathID] = true
		ends[d.Link] = append(ends[d.Link], at)
		if !slices.ContainsFunc(t.Switches, func(s lab.SwitchSpec) bool { return s.Name == d.To }) {
			e.Hosts[at] = true
		}
	}
	for _, both := range ends {
		if len(both) == 2 {
			e.cable(both[0], both[1])
		}
	}
	return e
}

// expectedIn returns what switches in memory have.
func expectedIn(p inmemory.Plan) expected {
	e := newExpected()
	for sw := range p.Ports {
		e.Switches[fmt.Sprintf("%016x", inmemory.ID(sw))] = true
	}
	for _, c := range p.Cables {
		e.cable(portOf(c[0].ID(), c[0].No), portOf(c[1].ID(), c[1].No))
	}
	for _, h := range p.Hosts {
		e.Hosts[portOf(h.ID(), h.No)] = true
	}
	return e
}

// shownBy returns what a controller shows.
func shownBy(n api.Network) expected {
	e := newExpected()
	for _, s := range n.Switches {
		e.Switches[s.Id] = true
		for _, p := range s.Ports {
			if p.Use == api.PortToHosts {
				e.Hosts[fmt.Sprintf("%s/%d", s.Id, p.Number)] = true
			}
		}
	}
	for _, l := range n.Links {
		e.Links[fmt.Sprintf("%s/%d->%s/%d", l.From.Switch, l.From.Port, l.To.Switch, l.To.Port)] = true
	}
	return e
}

// differs says how what is shown differs from what is expected; "" is not at all.
func (e expected) differs(shown expected) string {
	var all []string
	for _, part := range []struct {
		what      string
		want, got map[string]bool
	}{{"switches", e.Switches, shown.Switches}, {"links", e.Links, shown.Links}, {"ports of hosts", e.Hosts, shown.Hosts}} {
		missing, extra := without(part.want, part.got), without(part.got, part.want)
		if len(missing) > 0 {
			all = append(all, fmt.Sprintf("%d %s are missing, such as %s", len(missing), part.what, missing[0]))
		}
		if len(extra) > 0 {
			all = append(all, fmt.Sprintf("%d %s do not exist, such as %s", len(extra), part.what, extra[0]))
		}
	}
	return strings.Join(all, "; ")
}

// without returns what is in a and not in b, in order.
func without(a, b map[string]bool) (out []string) {
	for k := range a {
		if !b[k] {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}
