package collective

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"headgate.dev/headgate/bench"
)

// bothCases control FTP as well: in the databases' set, or in a set of its own.
func bothCases(d *bench.Draw) (out []bench.Case) {
	for _, together := range []bool{true, false} {
		c := seedCase{queue: "full", ftp: 8, marks: "af31-af21", control: "reno"}
		how := "two-sets"
		if together {
			how = "one-set"
		}
		id := "both/" + how
		sets := func(port int) []set {
			db, ftp := fmt.Sprintf("sport: %d-%d", port, port+1), fmt.Sprintf("sport: %d", port+2)
			if together {
				return []set{{name: dbSet, scaleControl: ours, rules: []string{db, ftp}}}
			}
			return []set{{name: dbSet, scaleControl: ours, rules: []string{db}}, {name: "ftp", scaleControl: ours, rules: []string{ftp}}}
		}
		out = append(out, bench.Case{
			Name: id,
			Claims: []bench.Claim{
				bench.NewClaim(id+"/ratio", "ratio DB1:DB2, deviation from the offered ratio", ratioOff, plain),
				bench.NewClaim(id+"/databases", "rate of both databases", notStarved),
				bench.NewClaim(id+"/ftp", "rate of FTP", notStarved),
			},
			Takes:     func(quick bool) time.Duration { return timesOf(quick).takes() },
			Alongside: func(quick bool) string { return alongside(quick, "both") },
			Run: func(ctx context.Context, r *bench.Run) error {
				var without, with *seedRun
				var errs [2]error
				var all sync.WaitGroup
				c.times = timesOf(r.Quick)
				drawn := d.Seed() + uint64(r.N)
				all.Go(func() { without, errs[0] = c.run(ctx, plain, drawn) })
				all.Go(func() { with, errs[1] = c.runWith(ctx, drawn, sets) })
				all.Wait()
				for _, err := range errs {
					if err != nil {
						return err
					}
				}
				sheet := r.Sheet(ours)
				sheet.Set(id+"/ratio", 100*math.Abs(with.ratio()/with.offeredRatio()-1))
				r.Sheet(plain).Set(id+"/ratio", 100*math.Abs(without.ratio()/without.offeredRatio()-1))
				sheet.Set(id+"/databases", 100*with.databases()/without.databases())
				sheet.Set(id+"/ftp", 100*with.carried("ftp")/without.carried("ftp"))
				return nil
			},
		})
	}
	return out
}
