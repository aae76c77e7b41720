package doctor

import (
	"errors"
	"slices"

	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Foreign lists the foreign traffic control on a device without groups: the engine's errors for what
// conflicts with groups, and the objects that can stay beside groups.
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
	state, _ := e.Observe(dev) // lists foreign traffic control also on a device without groups
	what = append(what, state.Foreign...)
	slices.Sort(what)
	return slices.Compact(what)
}
