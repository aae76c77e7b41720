package fabric

import (
	"slices"
	"strings"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
)

// plots draws the gaps of traffic by fault, and first pings by method.
func plots(claims []bench.Claim) []plot.Plot {
	all := []plot.Plot{
		bars(claims, "failover", "A part of the path fails", "longest gap (ms)", []string{rstp, osKenSTP}, func(id string) bool {
			return strings.HasPrefix(id, "failover/")
		}),
		bars(claims, "first-ping", "The first ping of two hosts", "first minus second, worst pair (ms)", []string{rstp, osKenSTP, osKenSwitch}, func(id string) bool {
			return id == "connect/ipv4" || id == "connect/ipv6"
		}),
	}
	// Of claims that were not selected there is nothing to draw.
	return slices.DeleteFunc(all, func(p plot.Plot) bool { return len(p.Bars.Groups) == 0 })
}

// bars draws the values of claims beside those of peers.
func bars(claims []bench.Claim, file, title, y string, peers []string, of func(id string) bool) plot.Plot {
	p := plot.Plot{File: file, Title: title, Y: y, Caption: "The worst of all repetitions. A missing bar was not measured.", Bars: &plot.Bars{}}
	for _, name := range append([]string{bench.Ours}, peers...) {
		set := plot.BarSet{Name: name}
		for _, c := range claims {
			if !of(c.ID) {
				continue
			}
			value := c.Ours
			if name != bench.Ours {
				value = c.Peer[name]
			}
			bar := -1.0
			if value != nil {
				bar = *value
			}
			set.Values = append(set.Values, bar)
			p.Row = c.ID[:strings.IndexByte(c.ID, '/')]
		}
		p.Bars.Sets = append(p.Bars.Sets, set)
	}
	for _, c := range claims {
		if of(c.ID) {
			p.Bars.Groups = append(p.Bars.Groups, c.ID[strings.IndexByte(c.ID, '/')+1:])
		}
	}
	return p
}
