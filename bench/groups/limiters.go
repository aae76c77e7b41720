package groups

import (
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/peers"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/shaper/quantum"
	"headgate.dev/headgate/unit"
)

// limiter shapes during a measurement, in the namespace of the calling thread.
type limiter interface {
	Apply(p shaper.Plan) error
	Clear(dev string) error
}

// Names of what is measured, besides bench.Ours.
const (
	quantumName = "quantum"
	// Variants of the engine quantum: with the paper's own step at every rate, and with the two
	// remedies of its chapter VII. A tenth of a second would be less than one packet of the smallest
	// group at 0.8 Mbit/s.
	fixedName     = "quantum, step 1500B"
	shortName     = "quantum, 250 ms"
	overdraftName = "quantum, overdraft"
	plainName     = "one plain limit"
	htbName       = "HTB by hand"
	tbfName       = "TBF (CNI)"
	policerName   = "policer"
	noneName      = "no limiter"
)

// paperStep is the paper's step, in bytes a quantum.
const paperStep = 1500

// fifoLeaf is HTB's leaf where queue delay is measured: 20 ms at 100 Mbit/s.
const fifoLeaf = 250_000

// limiters has a constructor for each, by name.
var limiters = map[string]func() (limiter, error){
	bench.Ours:  func() (limiter, error) { return engine{htb.New()}, nil },
	quantumName: func() (limiter, error) { return payload{engine{quantum.New()}, group.QuantumOptions{}}, nil },
	fixedName: func() (limiter, error) {
		return payload{engine{quantum.New()}, group.QuantumOptions{Step: group.Step{Bytes: paperStep}}}, nil
	},
	shortName: func() (limiter, error) {
		return payload{engine{quantum.New()}, group.QuantumOptions{Quantum: 250 * time.Millisecond}}, nil
	},
	overdraftName: func() (limiter, error) {
		return payload{engine{quantum.New()}, group.QuantumOptions{Overdraft: true}}, nil
	},
	plainName:   func() (limiter, error) { return peers.Plain(), nil },
	htbName:     func() (limiter, error) { return peers.HTB{}, nil },
	tbfName:     func() (limiter, error) { return peers.CNI(), nil },
	policerName: func() (limiter, error) { return peers.Policer{Burst: 128 * unit.Bytes(1024)}, nil },
	noneName:    func() (limiter, error) { return nothing{}, nil },
}

func newLimiter(name string) (limiter, error) {
	l, err := limiters[name]()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}

// engine is one of Headgate's engines.
type engine struct{ shaper.Shaper }

func (e engine) Apply(p shaper.Plan) error {
	_, err := e.Shaper.Apply(p)
	return err
}

// payload is an engine whose rates are payload: a plan in layer-2 rates is scaled so that full TCP
// segments fill the same part of the link.
type payload struct {
	engine
	options group.QuantumOptions
}

func (e payload) Apply(p shaper.Plan) error {
	for _, t := range []**group.Tree{&p.Out, &p.In} {
		if *t != nil {
			*t = scaledTree(*t)
		}
	}
	p.Quantum = e.options
	return e.engine.Apply(p)
}

func scaledTree(t *group.Tree) *group.Tree {
	scale := func(r unit.Rate) unit.Rate { return unit.Rate(float64(r) * 1448 / 1514) }
	out := *t
	out.Limit, out.Nodes = scale(t.Limit), slices.Clone(t.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		n.Guarantee, n.Ceiling = scale(n.Guarantee), scale(n.Ceiling)
	}
	return &out
}

// nothing does not limit.
type nothing struct{}

func (nothing) Apply(shaper.Plan) error { return nil }
func (nothing) Clear(string) error      { return nil }
