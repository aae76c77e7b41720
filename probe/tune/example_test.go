package tune_test

import (
	"fmt"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/probe/tune"
	"headgate.dev/headgate/unit"
)

// The limit is one per cent below the lower end of the token rate's interval. Without a token rate
// there is a reason instead.
func ExampleDirection_Propose() {
	eth0 := tune.Direction{
		Dev: "eth0", Margin: tune.Margin, Bytes: tune.Budget,
		LargerBudgetHint: func(bytes unit.Bytes) string { return fmt.Sprintf("write --bytes %v", bytes) },
	}
	for _, rate := range []probe.Estimate{
		{Value: 500e6, Low: 499e6, High: 501e6},
		probe.NoEstimate("the train found no limit"),
	} {
		p := eth0.Propose(&path.Answer{TokenRate: &tokenrate.Result{Rate: rate}})
		fmt.Printf("%v %q\n", p.Limit, p.Cannot)
	}
	// Output:
	// 494Mbit ""
	// 0bit "cannot estimate the token rate: the train found no limit"
}
