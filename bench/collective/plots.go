package collective

import (
	"fmt"
	"strings"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
)

// plot draws both databases' rates over time, as figures 6 and 7 of the paper: DB1 solid, DB2 dashed,
// with a colour for each method.
func (c seedCase) plot(r *bench.Run, got map[string]*seedRun) {
	p := plot.Plot{
		File: "databases-" + strings.ReplaceAll(c.id(), "/", "-"), Row: "ratio",
		Title:   fmt.Sprintf("DB1 and DB2 (dashed), FTP of %d Mbit/s from %v to %v", c.ftp, c.times.ftp, c.times.quiet),
		Caption: fmt.Sprintf("Each database's rate in 2 s, %s queues, %s, %s. DB1 (solid) has twice the offered load of DB2 (dashed).", c.queue, c.marks, c.control),
		X:       "time (s)", Y: "rate (Mbit/s)",
	}
	for i, law := range laws {
		for _, db := range []string{"db1", "db2"} {
			line := plot.Line{Colour: i, Dashed: db == "db2"}
			if db == "db1" {
				line.Name = law
			}
			const bin = 4 // intervals
			all := got[law].Flow(db).Intervals
			for k := 0; k+bin <= len(all); k += bin {
				bits, seconds := 0.0, 0.0
				for _, iv := range all[k : k+bin] {
					bits, seconds = bits+iv.DeliveredL2Bits, seconds+iv.Seconds
				}
				line.X, line.Y = append(line.X, all[k].StartSeconds+seconds/2), append(line.Y, bits/seconds/1e6)
			}
			p.Lines = append(p.Lines, line)
		}
	}
	r.Plot(p)
}
