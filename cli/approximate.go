package cli

import (
	"cmp"
	"strconv"

	"headgate/config"
	"headgate/group"
	"headgate/shaper/htb"
)

// noteApproximate says where lending is only roughly in proportion to the guarantees.
func (a *app) noteApproximate(set config.Set) {
	for _, i := range set.Interfaces {
		if i.Engine != group.HTB {
			continue
		}
		for _, d := range []struct {
			name string
			tree *group.Tree
		}{{"out", i.OutTree}, {"in", i.InTree}} {
			if d.tree == nil {
				continue
			}
			for _, u := range htb.Approximate(*d.tree) {
				file, line, _ := i.Where(d.name + ".groups")
				a.note("%s:%d: %s.groups: note: of what %s lends, %q and %q get %s:1 and not %s:1 as their guarantees, which are kept: a turn of HTB is at least a packet, and takes at most 20ms",
					file, line, d.name, cmp.Or(u.Parent, "the limit"), u.Most, u.Least, round(u.Lent), round(u.Wanted))
			}
		}
	}
}

func round(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) }
