package service

import (
	"context"
	"errors"
	"time"

	"headgate/bench"
)

// missingCases are those of the issue that nothing measures yet: they are printed as missing, and
// count as short.
func missingCases() (all []bench.Case) {
	zero := func(unit string) bench.Target { return bench.Target{Op: "<=", Value: 0, Unit: unit} }
	claims := map[string][]bench.Claim{
		"upgrade": {
			bench.NewClaim("upgrade/same-layout", "packets lost as the agent is killed and replaced", zero("packets")),
			bench.NewClaim("upgrade/changed-layout", "the same, by a build of other tables", zero("packets")),
			bench.NewClaim("upgrade/counters", "counters that went back", zero("counters")),
		},
	}
	for _, fault := range []string{"clock-skew", "full-disk"} {
		claims["faults/"+fault] = faultClaims("faults/" + fault)
	}
	for _, name := range []string{"faults/clock-skew", "faults/full-disk", "upgrade"} {
		all = append(all, bench.Case{
			Name: name, Claims: claims[name], Takes: func(bool) time.Duration { return time.Second },
			Run: func(context.Context, *bench.Run) error { return errors.New("nothing measures it yet") },
		})
	}
	return all
}
