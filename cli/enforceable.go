package cli

import (
	"cmp"
	"errors"
	"slices"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper/classifier"
	"headgate.dev/headgate/shaper/engines"
)

// checkEnforceable reports settings of a valid configuration that no device can enforce.
// The error is a config.Errors.
func checkEnforceable(set config.Set) error {
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
		for _, err := range unjoin(engines.Check(i.Engine, planFor(i.Dev, i))) {
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
