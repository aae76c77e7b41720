package relay

import (
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
	"headgate.dev/headgate/lab/traffic"
)

// compared are who is drawn beside Headgate, each in the colour of its place.
var compared = []string{directCUBIC.name, directBBR.name, mptcp.name, proxy.name, "thesis"}

// plots draws the rates by case.
func plots(claims []bench.Claim) []plot.Plot {
	return []plot.Plot{
		rates(claims, "one-path", "One connection over one path", "long/", "loss/", "far/"),
		rates(claims, "two-paths", "One connection over two paths", "two-paths/", "uneven/", "delay/25-25ms", "delay/25-100ms", "delay/25-400ms", "rate/100-500Mbit"),
	}
}

// rates draws the claims whose ids begin with one of begins, without those of parts of a case.
func rates(claims []bench.Claim, file, title string, begins ...string) plot.Plot {
	p := plot.Plot{
		File: file, Title: title, Y: "goodput (% of the rate)",
		Caption: "Goodput in the steady state, of the links' rate. A missing bar was not measured: MPTCP needs two paths.",
		Bars:    &plot.Bars{Sets: []plot.BarSet{{Name: bench.Ours}}},
	}
	for _, name := range compared {
		p.Bars.Sets = append(p.Bars.Sets, plot.BarSet{Name: name})
	}
	for _, begin := range begins {
		for _, c := range claims {
			if !strings.HasPrefix(c.ID, begin) || strings.Count(c.ID, "/") > 1 {
				continue
			}
			p.Bars.Groups = append(p.Bars.Groups, c.ID)
			for n := range p.Bars.Sets {
				value := c.Ours
				if n > 0 {
					value = c.Peer[compared[n-1]]
				}
				bar := -1.0
				if value != nil {
					bar = *value
				}
				p.Bars.Sets[n].Values = append(p.Bars.Sets[n].Values, bar)
			}
		}
	}
	return p
}

// rateLine is a flow's rate over time.
func rateLine(f *traffic.FlowResult, name string, colour int) plot.Line {
	const bin = 500 * time.Millisecond
	line := plot.Line{Name: name, Colour: colour}
	for from := time.Duration(0); ; from += bin {
		part := f.Between(from, from+bin)
		if part.Seconds < bin.Seconds()*0.9 {
			return line
		}
		line.X = append(line.X, (from + bin/2).Seconds())
		line.Y = append(line.Y, part.DeliveredRate()/1e6)
	}
}
