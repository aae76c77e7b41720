package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/explain"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// explainDemands prints the rates that groups of a plan would get.
func (a *app) explainDemands(c *cobra.Command, p shaper.Plan, direction string, demands []string, busy bool, f format) error {
	if direction == "in" {
		p.Out = nil
	}
	if direction == "out" {
		p.In = nil
	}
	if p.Out == nil && p.In == nil {
		return fmt.Errorf("%s has no limit in the direction %s, so the rates of its groups are not limited", p.Dev, direction)
	}
	others := explain.Demand(0)
	if busy {
		others = explain.Unbounded
	}
	d, err := explain.ParseDemands(p, demands, others)
	if err != nil {
		return usageError{fmt.Errorf("--demand: %w", err), c.CommandPath()}
	}
	division := explain.Divide(p, d)
	return a.print(f, division, division.Write)
}

// planToDivide returns the configuration of files, of a host of a service, or that in force on a device.
func (a *app) planToDivide(c *cobra.Command, at *remoteHost, dev string, files []string) (p shaper.Plan, err error) {
	var engine group.Engine
	switch {
	case at.isSet():
		e, err := a.explainRemote(c.Context(), at, dev)
		if err != nil {
			return p, err
		}
		p, engine = shaper.NewPlan(dev, e.File.Resolved), e.File.Engine
	case len(files) > 0:
		if dev != "" {
			dev = a.dev(dev)
		}
		_, i, err := a.loadInterface(c, files, dev)
		if err != nil {
			return p, err
		}
		p, engine = shaper.NewPlan(cmp.Or(dev, i.Dev), i.Resolved), i.Engine
	default:
		state, err := a.observer().Observe(a.dev(dev))
		if err != nil {
			return p, err
		}
		p, engine = state.Plan, state.Engine
	}
	if engine == group.Quantum {
		return p, fmt.Errorf("%s is shaped by engine quantum, which lends first come, first served: expected rates are only known for engine htb", p.Dev)
	}
	return p, nil
}
