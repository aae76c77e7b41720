package placement_test

import (
	"fmt"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/hostsurvey/placement"
	"headgate.dev/headgate/unit"
)

// set has a rule by mark for received packets, and a limit above the speed of the link.
func set() config.Set {
	s, err := config.Parse("eth0.yaml", []byte(`kind: Interface
dev: eth0
out:
  limit: 1Gbit
  groups: [{name: rest, default: true}]
in:
  limit: 90Mbit
  groups:
    - {name: web, match: [{mark: 7}]}
    - {name: rest, default: true}
`))
	if err != nil {
		panic(err)
	}
	return s
}

// The firewall marks received packets only after they are classified. Of a nil Machine nothing is known;
// Read returns this machine.
func ExampleMachine_Rules() {
	var unknown *placement.Machine
	for _, w := range unknown.Rules(set()) {
		fmt.Println(w.File, "line", w.Line, "key", w.Key)
	}
	// Output: eth0.yaml line 9 key in.groups[0].match[0].mark
}

func ExampleSpeeds() {
	speed := func(string) (unit.Rate, bool) { return 100 * unit.Mbit, true }
	for _, w := range placement.Speeds(set(), []string{"eth0"}, speed) {
		fmt.Println(w)
	}
	// Output: eth0.yaml:4: out.limit: warning: 1Gbit is more than eth0's speed of 100Mbit: guarantees cannot be met above the link's speed
}
