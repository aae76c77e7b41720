package reservations

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
)

// plots draws what QoS flows and all flows have of the ideal, by scenario and method.
func plots(claims []bench.Claim) (all []plot.Plot) {
	for _, part := range []struct{ end, file, title string }{
		{"/qos", "scenarios-qos", "QoS flows: what they got of the ideal"}, {"/total", "scenarios-total", "All flows: what they got of the ideal"},
	} {
		for _, row := range []struct{ prefix, what string }{
			{"scenarios/udp/5Mbit/", "UDP, 5 Mbit/s"}, {"scenarios/udp/100Mbit/", "UDP, 100 Mbit/s"}, {"scenarios/tcp/5Mbit/", "TCP, 5 Mbit/s"}, {"scenarios/tcp/100Mbit/", "TCP, 100 Mbit/s"},
		} {
			p := plot.Plot{
				Row: "scenarios", File: part.file + "-" + strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(row.prefix, "scenarios/"), "/"), "/", "-"),
				Title: part.title + " (" + row.what + ")", Y: "% of the ideal", Caption: "By unreserved part of the link, with controlled (c) and random (r) rates. A missing bar was not measured.", Bars: &plot.Bars{},
			}
			for _, name := range append([]string{bench.Ours}, namesOf(peers)...) {
				p.Bars.Sets = append(p.Bars.Sets, plot.BarSet{Name: name})
			}
			for _, c := range claims {
				rest, ok := strings.CutPrefix(c.ID, row.prefix)
				if !ok || !strings.HasSuffix(rest, part.end) {
					continue
				}
				f := strings.Split(rest, "/")
				p.Bars.Groups = append(p.Bars.Groups, fmt.Sprintf("%s %% %s", f[0], f[1][:1]))
				for i := range p.Bars.Sets {
					value := c.Ours
					if name := p.Bars.Sets[i].Name; name != bench.Ours {
						value = c.Peer[name]
					}
					bar := -1.0
					if value != nil {
						bar = *value
					}
					p.Bars.Sets[i].Values = append(p.Bars.Sets[i].Values, bar)
				}
			}
			all = append(all, p)
		}
	}
	return slices.DeleteFunc(all, func(p plot.Plot) bool { return len(p.Bars.Groups) == 0 })
}
