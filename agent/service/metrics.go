package service

import (
	"sync/atomic"
	"time"

	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/usage"
)

// exporter keeps the newest sample for the metrics.
type exporter struct {
	last  atomic.Pointer[[]shaper.State]
	meter usage.Meter
}

// take takes a sample.
func (e *exporter) take(_ time.Time, states []shaper.State) {
	e.last.Store(&states)
	e.meter.Take(directions(states))
}

// states returns the newest sample, nil before the first.
func (e *exporter) states() []shaper.State {
	if last := e.last.Load(); last != nil {
		return *last
	}
	return nil
}

// directions returns the counters of the groups, by device.
func directions(states []shaper.State) map[string][]usage.Direction {
	out := map[string][]usage.Direction{}
	for _, s := range states {
		out[s.Dev] = s.Usage()
	}
	return out
}
