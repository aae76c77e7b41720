package cli

import (
	"cmp"
	"strconv"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper/htb"
)

// noteApproximate notes where HTB lends only approximately in proportion to the guarantees.
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
			for _, u := range htb.DisproportionateLending(*d.tree) {
				file, line, _ := i.Where(d.name + ".groups")
				a.note("%s:%d: %s.groups: note: bandwidth that %s lends is divided between %q and %q %s:1 instead of %s:1 as their guarantees, because an HTB quantum is at least one packet and at most 20ms; the guarantees themselves are kept",
					file, line, d.name, cmp.Or(u.Parent, "the limit"), u.Most, u.Least, round(u.Lent), round(u.Wanted))
			}
		}
	}
}

func round(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) }
