package intent_test

import (
	"fmt"

	"headgate.dev/headgate/agent/intent"
	"headgate.dev/headgate/config"
)

// document returns the desired state of a device, or of the devices that match a pattern.
func document(origin intent.Origin, dev, limit string) intent.Document {
	set, err := config.Parse(string(origin), fmt.Appendf(nil, `kind: Interface
dev: %q
out: {limit: %s, groups: [{name: rest, default: true}]}
`, dev, limit))
	if err != nil {
		panic(err)
	}
	return intent.Document{Interface: set.Interfaces[0], Origin: origin}
}

// Files of the host take precedence over the documents of a controller.
func ExampleMerge() {
	files := intent.Source{Documents: []intent.Document{document(intent.Local, "veth*", "10Mbit")}}
	controller := intent.Source{Documents: []intent.Document{
		document(intent.Controller, "veth0", "20Mbit"), document(intent.Controller, "eth0", "1Gbit"),
	}}
	merged := intent.Merge(nil, files, controller)
	for _, dev := range []string{"veth0", "eth0"} {
		d, _ := merged.For(nil, dev)
		fmt.Println(dev, "has the limit", d.OutTree.Limit, "of the origin", d.Origin)
	}
	for _, p := range merged.Problems {
		fmt.Println(p.Dev+":", p.Err)
	}
	// Output:
	// veth0 has the limit 10Mbit of the origin local
	// eth0 has the limit 1Gbit of the origin controller
	// veth0: a local file of the host configures the device (veth*) and takes precedence
}
