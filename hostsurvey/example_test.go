package hostsurvey_test

import (
	"fmt"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/hostsurvey"
	"headgate.dev/headgate/unit"
)

// The text of a report is a valid configuration, with the reason for each value as a comment. On a real
// host, Run makes the report.
func ExampleReport_Text() {
	r := hostsurvey.Report{Interfaces: []hostsurvey.Interface{{
		Dev: "eth0", About: "uplink", Decision: hostsurvey.Written, Speed: unit.Gbit, SpeedGiven: true, Out: 990 * unit.Mbit, In: 950 * unit.Mbit,
	}}}
	set, err := config.Parse("init.yaml", []byte(r.Text()))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range set.Interfaces {
		fmt.Println(i.Dev, "out", i.OutTree.Limit, "in", i.InTree.Limit)
	}
	// Output: eth0 out 990Mbit in 950Mbit
}

func ExampleReport_Summary() {
	r := hostsurvey.Report{File: "init.yaml", Interfaces: []hostsurvey.Interface{
		{Dev: "eth0", Decision: hostsurvey.Written}, {Dev: "lo", Decision: hostsurvey.LeftOut},
	}}
	fmt.Println(r.Summary())
	// Output:
	// wrote init.yaml
	//   written: eth0
	//   left out: lo
	// Next: edit it, and
	//   headgate check -f init.yaml
	//   headgate plan -f init.yaml
}
