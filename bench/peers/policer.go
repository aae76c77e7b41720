package peers

import (
	"fmt"
	"net"

	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Policer drops packets above a rate and a burst. Only for out.
type Policer struct {
	Burst unit.Bytes
}

const policerPref = 1

// Apply attaches it.
func (l Policer) Apply(p shaper.Plan) error {
	if p.In != nil || p.Out == nil {
		return fmt.Errorf("policer: a limit on incoming traffic: %w", ErrUnsupported)
	}
	spec, err := loadPolicer()
	if err != nil {
		return err
	}
	for name, v := range map[string]uint64{"rate_bytes_per_s": p.Out.Limit.BytesPerSecond(), "burst_bytes": uint64(l.Burst)} {
		if err := spec.Variables[name].Set(v); err != nil {
			return err
		}
	}
	var objects policerObjects
	if err := spec.LoadAndAssign(&objects, nil); err != nil {
		return fmt.Errorf("cannot load the policer: %w", err)
	}
	defer objects.Close() // the filter keeps the program
	dev, err := net.InterfaceByName(p.Dev)
	if err != nil {
		return err
	}
	conn, err := nl.Open()
	if err != nil {
		return err
	}
	defer conn.Close()
	var b nl.Batch
	b.AddClsact(dev.Index)
	b.SetBPFFilter(dev.Index, nl.ClsactEgress, policerPref, objects.Policer.FD(), "policer")
	return conn.Execute(&b)
}

// Clear removes it.
func (l Policer) Clear(dev string) error { return clear(dev) }
