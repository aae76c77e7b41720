package quantum

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// settings are the parameters of a side's program besides its tree.
type settings struct {
	group.QuantumOptions
	MTU int `json:"mtu"`
}

func (s settings) quantum() time.Duration {
	if s.Quantum == 0 {
		return group.SeedQuantum
	}
	return s.Quantum
}

func (s settings) record() []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // cannot fail for a struct of numbers
	}
	return text
}

// Minor numbers of the classes that the classifier assigns.
const (
	rootMinor    = 1 // assigned to no packet; stands for the limit in the budgets of control traffic
	controlMinor = 2
	firstMinor   = 0x10 // FIRST_MINOR in policer.c
	maxGroups    = 64   // GROUPS in policer.c
	lastMinor    = firstMinor + maxGroups - 1
)

// Check returns the reasons why the engine does not support a plan, as one joined error.
func Check(p shaper.Plan) error { return check(p, settings{p.Quantum, 1500}) }

func check(p shaper.Plan, s settings) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("the engine quantum "+format+": write engine: htb, or remove the setting", args...))
	}
	if p.Overhead != (group.Overhead{}) {
		bad("counts payload and does not support overhead")
	}
	for name, t := range map[string]*group.Tree{"out": p.Out, "in": p.In} {
		if t == nil {
			continue
		}
		if t.Spare != group.Proportional {
			bad("lends first come, first served, and does not support spare: %s (%s)", t.Spare, name)
		}
		if len(t.Nodes) > maxGroups {
			bad("supports at most %d groups per direction, and %s has %d", maxGroups, name, len(t.Nodes))
		}
		for _, n := range t.Nodes {
			if !n.Leaf {
				bad("does not support nested groups, as in %s group %s", name, n.Path)
			}
			if n.Leaf && n.Ceiling < t.Limit {
				bad("does not support ceilings, as in %s group %s (%v of %v)", name, n.Path, n.Ceiling, t.Limit)
			}
		}
		if _, err := s.config(*t); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// optionError is an error about one option.
type optionError struct {
	key string
	error
}

// Key returns the key of the option.
func (e *optionError) Key() string { return e.key }

func (e *optionError) Unwrap() error { return e.error }

// config returns the configuration of the algorithm.
func (s settings) config(t group.Tree) (share.QuantumConfig, error) {
	guarantees := make([]unit.Rate, len(t.Nodes))
	for i, n := range t.Nodes {
		guarantees[i] = n.Guarantee
	}
	cfg, err := share.QuantumForRate(t.Limit, guarantees, s.quantum())
	if err != nil {
		return cfg, &optionError{"quantum", err}
	}
	cfg.MTU, cfg.Overdraft = uint64(s.MTU), s.Overdraft
	if s.Step.IsZero() {
		return cfg, nil
	}
	if cfg.Step = uint64(s.Step.Of(unit.Bytes(cfg.Limit))); cfg.Step == 0 {
		return cfg, &optionError{"step", fmt.Errorf("a step of %v is less than a byte of the %v that the limit allows per quantum of %v, and would never lend anything: write more", s.Step, unit.Bytes(cfg.Limit), s.quantum())}
	}
	if most := max(slices.Max(cfg.Configured), 1); cfg.Step > most && most > 1 {
		return cfg, &optionError{"step", fmt.Errorf("a step of %v exceeds the guarantee of every group per quantum of %v (%v), so no group would ever lend: write at most %dB", s.Step, s.quantum(), unit.Bytes(most), most)}
	}
	return cfg, nil
}
