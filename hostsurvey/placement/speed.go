package placement

import (
	"fmt"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// Speeds returns warnings about limits above the speed of the link. speed returns the speed of a
// device's link, false if it is unknown or not real, as that of a tap or veth.
func Speeds(set config.Set, devices []string, speed func(dev string) (unit.Rate, bool)) (out []Warning) {
	for _, dev := range devices {
		i, ok := set.For(dev)
		if !ok || i.Perspective == group.Guest {
			continue
		}
		v, known := speed(dev)
		if !known {
			continue
		}
		if i.Out != nil && i.Out.Limit > v {
			out = append(out, warningAt(i, "out.limit", fmt.Sprintf("%v is more than %s's speed of %v: guarantees cannot be met above the link's speed", i.Out.Limit, dev, v)))
		}
		if i.In != nil && i.In.Limit >= v {
			out = append(out, warningAt(i, "in.limit", fmt.Sprintf("%v is not below %s's speed of %v, so the queue forms at the other end of the link and cannot be controlled here: set %v or less", i.In.Limit, dev, v, v/100*95)))
		}
	}
	return out
}
