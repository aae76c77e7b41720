package peers

import (
	"fmt"

	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// TBF is one token bucket and one queue for the whole device.
type TBF struct {
	// Burst is the bucket size for a limit, Queue the queue limit in bytes.
	Burst, Queue func(limit unit.Rate) unit.Bytes
}

// Plain is a limit as a hypervisor has it. The bucket holds 10 ms, or the 5,000 bytes that Xen adds at
// once at the paper's 100,000 bytes/s (50 ms). The queue holds 50 ms, or 64 KiB, without which TCP
// would not work at the paper's rate.
func Plain() TBF {
	return TBF{
		Burst: func(limit unit.Rate) unit.Bytes { return max(unit.Bytes(limit.BytesPerSecond()/100), 5000) },
		Queue: func(limit unit.Rate) unit.Bytes { return max(unit.Bytes(limit.BytesPerSecond()/20), 64<<10) },
	}
}

// cniBurst is the burst that the user of the CNI bandwidth plugin chooses: two super-packets.
const cniBurst = 128 << 10

// CNI is the configuration of the CNI bandwidth plugin (plugins/meta/bandwidth, ifb_creator.go): the
// queue holds 25 ms at the rate and the burst.
func CNI() TBF {
	return TBF{
		Burst: func(unit.Rate) unit.Bytes { return cniBurst },
		Queue: func(limit unit.Rate) unit.Bytes { return unit.Bytes(limit.BytesPerSecond()/40) + cniBurst },
	}
}

// Apply sets the limits of the plan and no groups.
func (t TBF) Apply(p shaper.Plan) error {
	return each(p, func(dev string, in bool) error {
		limit := p.Out
		if in {
			limit = p.In
		}
		return tc(fmt.Sprintf("qdisc add dev %s root handle 1: tbf rate %dbit burst %d limit %d",
			dev, limit.Limit, t.Burst(limit.Limit), t.Queue(limit.Limit)))
	})
}

// Clear removes it.
func (t TBF) Clear(dev string) error { return clear(dev) }
