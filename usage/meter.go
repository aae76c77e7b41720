package usage

import (
	"sync"
	"time"
)

// Least is the least time over which it is told whether a guarantee was kept: in a tenth of a second
// a slow group has a packet or none.
const Least = 900 * time.Millisecond

// Meter counts for how long guarantees were not met, as readings come. The zero Meter is ready.
type Meter struct {
	mu    sync.Mutex
	since map[string]map[string]Counters // by device and group
	unmet map[string]map[string]float64  // seconds, as are these
}

// Take takes in a reading of all devices. Readings that follow each other closely are judged together.
func (m *Meter) Take(devices map[string][]Group) {
	m.mu.Lock()
	defer m.mu.Unlock()
	since, unmet := map[string]map[string]Counters{}, map[string]map[string]float64{}
	for dev, groups := range devices {
		since[dev], unmet[dev] = map[string]Counters{}, map[string]float64{}
		for _, g := range groups {
			was, known := m.since[dev][g.Name]
			sum := m.unmet[dev][g.Name]
			if took := g.At.Sub(was.At); known && took > 0 && took < Least {
				g.Counters = was
			} else if known && Unmet(was, g.Counters, g.Guarantee) {
				sum += took.Seconds()
			}
			since[dev][g.Name], unmet[dev][g.Name] = g.Counters, sum
		}
	}
	m.since, m.unmet = since, unmet
}

// Unmet is for how many seconds a group has not had its guarantee, since it was read first.
func (m *Meter) Unmet(dev, name string) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unmet[dev][name]
}
