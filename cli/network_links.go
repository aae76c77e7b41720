package cli

import (
	"cmp"
	"fmt"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/unit/rounded"
)

// switchNames are the names of switches, by their datapath ids.
type switchNames map[string]string

func namesOf(switches []api.NetworkSwitch) switchNames {
	names := switchNames{}
	for _, s := range switches {
		if s.Name != nil {
			names[s.Id] = *s.Name
		}
	}
	return names
}

// of returns the name of a switch, its datapath id if it has none.
func (n switchNames) of(id string) string { return cmp.Or(n[id], id) }

// port prints a port as s1/3, with the datapath id of a switch without a name.
func (n switchNames) port(p api.NetworkPortID) string {
	return fmt.Sprintf("%s/%d", n.of(p.Switch), p.Port)
}

// linkRows returns a row for each cable, with the rates of both directions, or for each direction if their capacities differ.
func (n switchNames) linkRows(links []api.NetworkLink) [][]string {
	type alike struct {
		from, to api.NetworkPortID
		capacity int64
		source   api.NetworkLinkCapacitySource
	}
	byEnds := map[alike]api.NetworkLink{}
	for _, l := range links {
		byEnds[alike{l.From, l.To, l.CapacityBps, l.CapacitySource}] = l
	}
	rows := [][]string{{"LINK", "", "", "CAPACITY", "SOURCE", "RATE ->", "RATE <-"}}
	for _, l := range links {
		arrow, back := "->", ""
		if other, ok := byEnds[alike{l.To, l.From, l.CapacityBps, l.CapacitySource}]; ok {
			if cmp.Or(cmp.Compare(l.To.Switch, l.From.Switch), cmp.Compare(l.To.Port, l.From.Port)) < 0 {
				continue
			}
			arrow, back = "<->", linkRate(other)
		}
		rows = append(rows, []string{n.port(l.From), arrow, n.port(l.To), unit.Rate(l.CapacityBps).String(), string(l.CapacitySource), linkRate(l), back})
	}
	return rows
}

// linkRate prints the rate of a link, and its part of the capacity.
func linkRate(l api.NetworkLink) string {
	if l.RateBps == nil {
		return "-"
	}
	return fmt.Sprintf("%s %.0f%%", rounded.Rate(float64(*l.RateBps)), 100*float64(*l.RateBps)/float64(max(l.CapacityBps, 1)))
}
