package quantum

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headgate/group"
	"headgate/shaper"
	"headgate/share"
	"headgate/unit"
)

// Options are the two remedies that chapter VII proposes for the covetous effect.
// The zero Options are the seed's algorithm.
type Options struct {
	// Quantum is the length of a quantum; 0 is the seed's second. A shorter one
	// shortens the effect, but must hold more than two packets of the limit.
	Quantum time.Duration `json:"quantum_ns,omitempty"`
	// Overdraft lets packets inside their group's guarantee pass although the total
	// is used up, for one quantum at a time.
	Overdraft bool `json:"overdraft,omitempty"`
}

func (o Options) quantum() time.Duration {
	if o.Quantum == 0 {
		return share.SeedQuantum
	}
	return o.Quantum
}

// settings are what the program of a side depends on besides the plan.
type settings struct {
	Options
	MTU int `json:"mtu"`
}

func (s settings) record() []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a struct of numbers
	}
	return text
}

// Numbers of groups, which are the classes that the classifier gives.
const (
	controlMinor = 2
	firstMinor   = 0x10 // FIRST_MINOR in policer.c
	maxGroups    = 64   // GROUPS in policer.c
	lastMinor    = firstMinor + maxGroups - 1
)

// Check tells why a plan is beyond the seed's algorithm: every reason in one
// joined error.
func Check(p shaper.Plan) error { return check(p, settings{MTU: 1500}) }

func check(p shaper.Plan, s settings) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("the engine quantum "+format+": write engine: htb, or leave that out", args...))
	}
	if p.Overhead != (group.Overhead{}) {
		bad("counts payload and has no use for overhead")
	}
	for name, t := range map[string]*group.Tree{"out": p.Out, "in": p.In} {
		if t == nil {
			continue
		}
		if t.Spare != group.Proportional {
			bad("lends to whoever comes first and has no spare: %s (%s)", t.Spare, name)
		}
		if len(t.Nodes) > maxGroups {
			bad("has at most %d groups a direction, and %s has %d", maxGroups, name, len(t.Nodes))
		}
		for _, n := range t.Nodes {
			if !n.Leaf {
				bad("has no groups inside groups, as in %s group %s", name, n.Path)
			}
			if n.Leaf && n.Ceiling < t.Limit {
				bad("has no ceilings, as of %s group %s (%v of %v)", name, n.Path, n.Ceiling, t.Limit)
			}
		}
		if _, err := s.config(*t); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// config is what the algorithm divides.
func (s settings) config(t group.Tree) (share.QuantumConfig, error) {
	guarantees := make([]unit.Rate, len(t.Nodes))
	for i, n := range t.Nodes {
		guarantees[i] = n.Guarantee
	}
	cfg, err := share.QuantumForRate(t.Limit, guarantees, s.quantum())
	cfg.MTU, cfg.Overdraft = uint64(s.MTU), s.Overdraft
	return cfg, err
}
