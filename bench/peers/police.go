package peers

import (
	"fmt"

	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Police is the kernel's own policer, act_police, on the frames of a guest, which are matched by the
// last byte of their source address, as an administrator would cap one by hand: in each direction of
// the plan, without an IFB. It ignores the rest of the plan. Not every kernel has it.
type Police struct {
	Rate  unit.Rate
	Burst unit.Bytes
	SMAC  byte
}

// Apply attaches it.
func (l Police) Apply(p shaper.Plan) error {
	lines := []string{"qdisc add dev " + p.Dev + " clsact"}
	add := func(hook string) {
		lines = append(lines, fmt.Sprintf("filter add dev %s %s protocol all pref 1 u32 match u16 0x%02x 0xff at -4 action police rate %dbit burst %d conform-exceed drop/ok",
			p.Dev, hook, l.SMAC, l.Rate, l.Burst))
	}
	if p.Out != nil {
		add("egress")
	}
	if p.In != nil {
		add("ingress")
	}
	return tc(lines...)
}

// Clear removes it.
func (l Police) Clear(dev string) error { return clear(dev) }
