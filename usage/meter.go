package usage

import (
	"sync"
	"time"
)

// MinInterval is the shortest interval in which an unmet guarantee is detected: in 0.1 s a slow group
// delivers one packet or none.
const MinInterval = 900 * time.Millisecond

// Meter sums the time in which guarantees were unmet. The zero Meter is ready for use.
type Meter struct {
	mu    sync.Mutex
	since map[string]map[string]Counters // by device and group
	unmet map[string]map[string]float64  // seconds
}

// Take adds a reading of all devices. Readings that are closer together than Least are evaluated
// together.
func (m *Meter) Take(devices map[string][]Direction) {
	m.mu.Lock()
	defer m.mu.Unlock()
	since, unmet := map[string]map[string]Counters{}, map[string]map[string]float64{}
	for dev, directions := range devices {
		since[dev], unmet[dev] = map[string]Counters{}, map[string]float64{}
		for _, d := range directions {
			for _, g := range d.Groups {
				name := d.Key(g)
				was, known := m.since[dev][name]
				sum := m.unmet[dev][name]
				if took := g.At.Sub(was.At); known && took > 0 && took < MinInterval {
					g.Counters = was
				} else if known && Unmet(was, g.Counters, g.Guarantee) {
					sum += took.Seconds()
				}
				since[dev][name], unmet[dev][name] = g.Counters, sum
			}
		}
	}
	m.since, m.unmet = since, unmet
}

// Unmet returns for how many seconds a group's guarantee was unmet since the group's first reading.
func (m *Meter) Unmet(dev, name string) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unmet[dev][name]
}
