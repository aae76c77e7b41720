package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"headgate.dev/headgate/collective/host"
)

// NewCollective returns the collector of the connection sets of "headgate collective run".
func NewCollective(states func() ([]host.State, error)) prometheus.Collector {
	return collective{states}
}

type collective struct{ states func() ([]host.State, error) }

var (
	setLabels        = []string{"set", "destination"}
	connectionLabels = []string{"set", "destination", "local", "remote"}

	setControlled    = prometheus.NewDesc("headgate_collective_controlled", "1 if the connection set is controlled.", setLabels, nil)
	setWaiting       = prometheus.NewDesc("headgate_collective_cgroup_missing", "1 if the cgroup or unit of the connection set does not exist.", setLabels, nil)
	setMembers       = prometheus.NewDesc("headgate_collective_connections", "Number of connections in the connection set.", setLabels, nil)
	setRetransmitted = prometheus.NewDesc("headgate_collective_retransmitted_ratio", "Fraction of segments retransmitted since control of the set started or ended.", setLabels, nil)

	needs         = prometheus.NewDesc("headgate_collective_learned_rate_bits_per_second", "Payload rate of the connection measured before congestion, from which its learned proportion follows.", connectionLabels, nil)
	pace          = prometheus.NewDesc("headgate_collective_pacing_cap_bits_per_second", "Pacing cap of the connection, if there is one.", connectionLabels, nil)
	window        = prometheus.NewDesc("headgate_collective_window_cap_bytes", "Window cap of the connection, if there is one.", connectionLabels, nil)
	roundTrip     = prometheus.NewDesc("headgate_collective_round_trip_seconds", "Last measured round-trip time of the connection.", connectionLabels, nil)
	acked         = prometheus.NewDesc("headgate_collective_acknowledged_bytes_total", "Acknowledged payload of the connection.", connectionLabels, nil)
	retransmitted = prometheus.NewDesc("headgate_collective_retransmitted_segments_total", "Retransmitted segments of the connection.", connectionLabels, nil)
)

// Describe implements prometheus.Collector.
func (c collective) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{setControlled, setWaiting, setMembers, setRetransmitted, needs, pace, window, roundTrip, acked, retransmitted} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c collective) Collect(to chan<- prometheus.Metric) {
	states, err := c.states()
	if err != nil {
		to <- prometheus.NewInvalidMetric(setControlled, err)
		return
	}
	for _, s := range states {
		of := []string{s.Set, s.Destination}
		gauge(to, setControlled, boolValue(s.Controlling), of...)
		gauge(to, setWaiting, boolValue(s.Waiting), of...)
		gauge(to, setMembers, float64(len(s.Connections)), of...)
		gauge(to, setRetransmitted, s.Resent, of...)
		seen := map[[2]string]bool{}
		for _, m := range s.Connections {
			// Two network namespaces may have connections with the same endpoints; a metric may exist only once.
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
			gauge(to, roundTrip, m.RTT.Seconds(), of...)
			to <- prometheus.MustNewConstMetric(acked, prometheus.CounterValue, float64(m.Acked), of...)
			to <- prometheus.MustNewConstMetric(retransmitted, prometheus.CounterValue, float64(m.Retransmits), of...)
		}
	}
}

// gauge sends one gauge.
func gauge(to chan<- prometheus.Metric, d *prometheus.Desc, v float64, of ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, of...)
}

// boolValue returns 1 for true and 0 for false.
func boolValue(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
