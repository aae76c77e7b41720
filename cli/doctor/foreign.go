package doctor

import (
	"errors"
	"slices"

	"headgate/shaper"
	"headgate/unit"
)

// Foreign says what there is of others' traffic control on a device that has no groups: what is in
// the way of groups, as an engine would say it, and what they would run beside.
func Foreign(e shaper.Shaper, dev string) (what []string) {
	for _, out := range []bool{true, false} {
		p, err := simplePlan(dev, unit.Gbit, out, !out)
		if err == nil {
			_, err = e.Diff(p)
		}
		if errors.Is(err, shaper.ErrForeign) {
			what = append(what, err.Error())
		}
	}
	state, _ := e.Observe(dev) // it names what is not ours also where nothing is
	what = append(what, state.Foreign...)
	slices.Sort(what)
	return slices.Compact(what)
}
