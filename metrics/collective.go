package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"headgate/collective/host"
)

// Collective are the sets of connections of "headgate collective run".
func Collective(states func() ([]host.State, error)) prometheus.Collector {
	return collective{states}
}

type collective struct{ states func() ([]host.State, error) }

var (
	ofSet        = []string{"set", "destination"}
	ofConnection = []string{"set", "destination", "local", "remote"}

	setControlled = prometheus.NewDesc("headgate_collective_controlled", "Whether the set is held in proportion.", ofSet, nil)
	setWaiting    = prometheus.NewDesc("headgate_collective_waiting", "Whether the set's cgroup is not there.", ofSet, nil)
	setMembers    = prometheus.NewDesc("headgate_collective_connections", "Connections of the set.", ofSet, nil)
	setResent     = prometheus.NewDesc("headgate_collective_resent_ratio", "Part of the segments that was sent again since control began, or ended.", ofSet, nil)

	needs  = prometheus.NewDesc("headgate_collective_needed_bits_per_second", "What the connection was found to need, of payload.", ofConnection, nil)
	pace   = prometheus.NewDesc("headgate_collective_pace_bits_per_second", "Its pace, if it is held.", ofConnection, nil)
	window = prometheus.NewDesc("headgate_collective_window_bytes", "Its largest window, if it is held.", ofConnection, nil)
	trip   = prometheus.NewDesc("headgate_collective_round_trip_seconds", "Its newest round trip.", ofConnection, nil)
	acked  = prometheus.NewDesc("headgate_collective_acknowledged_bytes_total", "Payload that was acknowledged.", ofConnection, nil)
	resent = prometheus.NewDesc("headgate_collective_resent_segments_total", "Segments that were sent again.", ofConnection, nil)
)

// Describe is part of prometheus.Collector.
func (c collective) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{setControlled, setWaiting, setMembers, setResent, needs, pace, window, trip, acked, resent} {
		to <- d
	}
}

// Collect is part of prometheus.Collector.
func (c collective) Collect(to chan<- prometheus.Metric) {
	states, err := c.states()
	if err != nil {
		to <- prometheus.NewInvalidMetric(setControlled, err)
		return
	}
	for _, s := range states {
		of := []string{s.Set, s.Destination}
		gauge(to, setControlled, one(s.Controlling), of...)
		gauge(to, setWaiting, one(s.Waiting), of...)
		gauge(to, setMembers, float64(len(s.Connections)), of...)
		gauge(to, setResent, s.Resent, of...)
		seen := map[[2]string]bool{}
		for _, m := range s.Connections {
			// Two network namespaces may have connections between the same addresses.
			ends := [2]string{m.Local, m.Remote}
			if seen[ends] {
				continue
			}
			seen[ends] = true
			of := []string{s.Set, s.Destination, m.Local, m.Remote}
			if m.Needs > 0 {
				gauge(to, needs, float64(m.Needs), of...)
			}
			if m.Pace > 0 {
				gauge(to, pace, float64(m.Pace), of...)
			}
			if m.Window > 0 {
				gauge(to, window, float64(m.Window), of...)
			}
			gauge(to, trip, m.RTT.Seconds(), of...)
			to <- prometheus.MustNewConstMetric(acked, prometheus.CounterValue, float64(m.Acked), of...)
			to <- prometheus.MustNewConstMetric(resent, prometheus.CounterValue, float64(m.Retransmits), of...)
		}
	}
}

func gauge(to chan<- prometheus.Metric, d *prometheus.Desc, v float64, of ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, of...)
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
