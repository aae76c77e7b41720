package groups

import (
	"errors"
	"fmt"

	"headgate/bench"
	"headgate/bench/peers"
	"headgate/shaper"
	"headgate/shaper/htb"
	"headgate/unit"
)

// limiter is what is in force while something is measured, in the namespace of
// the calling thread.
type limiter interface {
	Apply(p shaper.Plan) error
	Clear(dev string) error
}

// Names of what is measured, beside bench.Ours.
const (
	quantumName = "quantum"
	plainName   = "one plain limit"
	htbName     = "HTB by hand"
	tbfName     = "TBF (CNI)"
	policerName = "policer"
	noneName    = "no limiter"
)

// quantum is the second engine; nil while it is not built. This is the one place
// where it is plugged in.
var quantum func() shaper.Shaper

// fifoLeaf is HTB's leaf where waiting is measured: 20 ms at 100 Mbit/s.
const fifoLeaf = 250_000

// limiters makes each, by name.
var limiters = map[string]func() (limiter, error){
	bench.Ours: func() (limiter, error) { return engine{htb.New()}, nil },
	quantumName: func() (limiter, error) {
		if quantum == nil {
			return nil, errors.New("the engine quantum is not built yet")
		}
		return engine{quantum()}, nil
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

// engine is one of Headgate's.
type engine struct{ shaper.Shaper }

func (e engine) Apply(p shaper.Plan) error {
	_, err := e.Shaper.Apply(p)
	return err
}

// nothing limits nothing.
type nothing struct{}

func (nothing) Apply(shaper.Plan) error { return nil }
func (nothing) Clear(string) error      { return nil }
