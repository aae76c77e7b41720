package groups

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/unit"
)

// manyDraws is the number of random cases of the paper's test in the row drawn.
const manyDraws = 20

// manyRamps returns random cases like the cases "drawn-1" and "drawn-2" of the rows ramp-in and
// ramp-out, ordered by their limits.
func manyRamps(d *bench.Draw) (out []rampCase) {
	for n := range manyDraws {
		name := strconv.Itoa(n + 1)
		out = append(out, drawRamp(d.For("drawn/"+name), name)...)
	}
	for i := range out {
		out[i].many = true
	}
	slices.SortStableFunc(out, func(a, b rampCase) int { return cmp.Compare(a.limit, b.limit) })
	return out
}

// manyBatch returns the batch of a random case: slow ones use a hundredth of the machine's capacity,
// and two of up to 100 Mbit/s use a small part.
func manyBatch(c rampCase, place int) string {
	switch {
	case c.slow():
		return "drawn, slow"
	case c.limit <= 100*unit.Mbit:
		return fmt.Sprintf("drawn, pair %d", place/2)
	}
	return ""
}

func drawnBenches(d *bench.Draw) (out []bench.Case) {
	for place, c := range manyRamps(d) {
		out = append(out, bench.Case{
			Name: fmt.Sprintf("drawn/%s/%s", c.name, direction(c.in)), Claims: c.claims(), Drawn: c.drawn,
			Run: func(ctx context.Context, r *bench.Run) error {
				if leftOut(r) {
					return nil
				}
				return c.run(ctx, r)
			},
			Alongside: func(bool) string { return manyBatch(c, place) },
			Takes:     fullOnly(c.timing(false).length() + overhead),
		})
	}
	return out
}

// fullOnly returns the duration of a case that is not part of a smoke run.
func fullOnly(full time.Duration) func(quick bool) time.Duration {
	return func(quick bool) time.Duration {
		if quick {
			return 0
		}
		return full
	}
}
