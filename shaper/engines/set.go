package engines

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/classifier"
	"headgate.dev/headgate/shaper/htb"
)

// CheckSet returns the settings of a valid configuration that no device can enforce, with their places. The
// error is a config.Errors.
func CheckSet(set config.Set) error {
	var errs config.Errors
	for _, i := range set.Interfaces {
		add := func(key string, err error) {
			file, line, column := i.Where(key)
			errs = append(errs, config.Error{File: file, Line: line, Column: column, Key: key, Message: err.Error()})
		}
		for _, d := range []struct {
			tree   *group.Tree
			places []string
		}{{i.OutTree, i.OutRules}, {i.InTree, i.InRules}} {
			if d.tree == nil {
				continue
			}
			if err := classifier.Check(*d.tree); err != nil {
				add(d.places[err.Rule], err)
			}
		}
		for _, err := range unjoin(Check(i.Engine, shaper.NewPlan(i.Dev, i.Resolved))) {
			key := "engine"
			var of interface{ Key() string }
			if errors.As(err, &of) && i.Has(of.Key()) {
				key = of.Key()
			}
			add(key, err)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// unjoin returns the errors that errors.Join joined into err, sorted by text.
func unjoin(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &joined):
		list := slices.Clone(joined.Unwrap())
		slices.SortFunc(list, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
		return list
	}
	return []error{err}
}

// Notes returns notes about the places where HTB lends only approximately in proportion to the guarantees.
func Notes(set config.Set) (out []config.Note) {
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
				out = append(out, i.Note(d.name+".groups", "bandwidth that %s lends is divided between %q and %q %s:1 instead of %s:1 as their guarantees, because an HTB quantum is at least one packet and at most 20ms; the guarantees themselves are kept",
					cmp.Or(u.Parent, "the limit"), u.Highest, u.Lowest, round(u.LentRatio), round(u.GuaranteeRatio)))
			}
		}
	}
	return out
}

func round(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) }
