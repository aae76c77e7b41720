package fabric

import (
	"math"
	"time"
)

// Uncounted is a counter that a switch does not have (OpenFlow 1.3.5, 7.3.5.6).
const Uncounted = ^uint64(0)

// Counts are what a port has counted of one direction, or Uncounted. Frames are those that passed, and Dropped and Errors those that
// did not. Bytes are those of layer 2: of a frame from its destination MAC to its last byte before the frame check sequence, as Linux
// (linux/if_link.h, rx_bytes) and Open vSwitch count. The capacity of a link is of the same bytes.
type Counts struct {
	Bytes, Frames, Dropped, Errors uint64
}

// PortCounters are the counters of a port at one reading.
type PortCounters struct {
	// At is when the reading arrived. Readings of a port are in the order of At.
	At time.Time
	// Age is for how long the port has existed, by the switch's clock (duration_sec and duration_nsec), 0 if the switch does
	// not know it.
	Age    time.Duration
	Rx, Tx Counts
}

// Traffic is what passes in one direction, as a mean between two readings. NaN is not known.
type Traffic struct {
	Rate   float64 // bit/s, of the bytes of Counts
	Drops  float64 // frames per second
	Errors float64 // frames per second
}

// PortTraffic is the traffic of a port.
type PortTraffic struct{ Rx, Tx Traffic }

// Unmeasured is traffic of which nothing is known.
func Unmeasured() Traffic { return Traffic{math.NaN(), math.NaN(), math.NaN()} }

// LinkTraffic is the traffic of a link, of what the port at its beginning sends and the one at its end receives. Frames are lost at
// either. What is not counted at one of them is what the other counts.
func LinkTraffic(sends, receives Traffic) Traffic {
	return Traffic{sends.Rate, addKnown(sends.Drops, receives.Drops), addKnown(sends.Errors, receives.Errors)}
}

func addKnown(a, b float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return a + b
}

// PortMeter makes traffic of the readings of a port. The zero PortMeter has none.
type PortMeter struct {
	last     PortCounters
	traffic  PortTraffic
	measured bool
	readings Readings
}

// Last returns the last reading, the zero value before the first.
func (m *PortMeter) Last() PortCounters { return m.last }

// Readings returns a copy of the last readings.
func (m *PortMeter) Readings() Readings { return m.readings.clone() }

// Traffic returns the traffic between the last two readings, of which nothing is known before the second.
func (m *PortMeter) Traffic() PortTraffic {
	if !m.measured {
		return PortTraffic{Unmeasured(), Unmeasured()}
	}
	return m.traffic
}

// Take takes a reading, and reports whether there is new traffic. A reading that is not later than the last is ignored. With one
// whose counters began again, because the switch was restarted or the port was added again, the meter begins again too: how much
// was counted in between is not known.
func (m *PortMeter) Take(now PortCounters) bool {
	was := m.last
	if !now.At.After(was.At) {
		return false
	}
	m.readings.take(was, now)
	m.last, m.measured = now, !was.At.IsZero() && !now.restarted(was)
	if m.measured {
		seconds := now.since(was).Seconds()
		m.traffic = PortTraffic{now.Rx.since(was.Rx, seconds), now.Tx.since(was.Tx, seconds)}
	}
	return m.measured
}

// restarted reports whether the counters began again between two readings.
func (now PortCounters) restarted(was PortCounters) bool {
	return now.Age != 0 && now.Age < was.Age || now.Rx.less(was.Rx) || now.Tx.less(was.Tx)
}

func (now Counts) less(was Counts) bool {
	less := func(now, was uint64) bool { return now < was && was != Uncounted }
	return less(now.Bytes, was.Bytes) || less(now.Frames, was.Frames) || less(now.Dropped, was.Dropped) || less(now.Errors, was.Errors)
}

// since returns the time between two readings. The switch's clock shows when it has counted, and that of the controller when the
// reply came, which varies as the channel and both are busy. A clock of whole seconds, or one that does not run as the controller's,
// is not used.
func (now PortCounters) since(was PortCounters) time.Duration {
	arrived, counted := now.At.Sub(was.At), now.Age-was.Age
	fine := now.Age%time.Second != 0 && was.Age%time.Second != 0
	if fine && counted >= arrived/2 && counted <= 2*arrived {
		return counted
	}
	return arrived
}

func (now Counts) since(was Counts, seconds float64) Traffic {
	perSecond := func(now, was uint64) float64 {
		if now == Uncounted || was == Uncounted {
			return math.NaN()
		}
		return float64(now-was) / seconds
	}
	return Traffic{8 * perSecond(now.Bytes, was.Bytes), perSecond(now.Dropped, was.Dropped), perSecond(now.Errors, was.Errors)}
}
