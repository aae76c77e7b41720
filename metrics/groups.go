package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"headgate.dev/headgate/shaper"
)

// maxGroups is the maximum number of groups that are exported, chosen by this project: a scrape of 16,000
// groups would have 15 MB. Only the number of the other groups is exported.
const maxGroups = 2000

// NewGroups returns the collector of the bandwidth groups in force on this host's devices. states returns the
// states as last read, and unmet the seconds in which the guarantee of a group ("out/web") was unmet.
func NewGroups(states func() []shaper.State, unmet func(dev, group string) float64) prometheus.Collector {
	return groups{states, unmet}
}

type groups struct {
	states func() []shaper.State
	unmet  func(dev, group string) float64
}

var (
	groupLabels = []string{"dev", "direction", "group"}

	groupGuarantee = prometheus.NewDesc("headgate_group_guarantee_bits_per_second", "Guarantee of the group, in layer 2.", groupLabels, nil)
	groupCeiling   = prometheus.NewDesc("headgate_group_ceiling_bits_per_second", "Ceiling of the group, in layer 2.", groupLabels, nil)
	groupBytes     = prometheus.NewDesc("headgate_group_delivered_bytes_total", "Bytes delivered by the group, in layer 2.", groupLabels, nil)
	groupPackets   = prometheus.NewDesc("headgate_group_delivered_packets_total", "Packets delivered by the group.", groupLabels, nil)
	groupDrops     = prometheus.NewDesc("headgate_group_dropped_packets_total", "Packets dropped because the queue of the group was full.", groupLabels, nil)
	groupMarks     = prometheus.NewDesc("headgate_group_marked_packets_total", "Packets marked with ECN CE.", groupLabels, nil)
	groupBacklog   = prometheus.NewDesc("headgate_group_backlog_bytes", "Bytes in the queue of the group.", groupLabels, nil)
	groupDelay     = prometheus.NewDesc("headgate_group_queue_delay_seconds", "Sojourn time of the packet that left the queue last; 0 for an idle group.", groupLabels, nil)
	groupUnmet     = prometheus.NewDesc("headgate_group_unmet_seconds_total", "Time in which the group had a backlog and was served more slowly than its guarantee.", groupLabels, nil)
	groupsOmitted  = prometheus.NewDesc("headgate_groups_not_exported", "Number of groups that are not exported, beyond the first 2000.", nil, nil)
)

// Describe implements prometheus.Collector.
func (g groups) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{groupGuarantee, groupCeiling, groupBytes, groupPackets, groupDrops, groupMarks, groupBacklog, groupDelay, groupUnmet, groupsOmitted} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (g groups) Collect(to chan<- prometheus.Metric) {
	exported, omitted := 0, 0
	for _, s := range g.states() {
		for direction, d := range map[string]*shaper.DirectionState{"out": s.Out, "in": s.In} {
			if d == nil {
				continue
			}
			for _, one := range d.Groups {
				if exported == maxGroups {
					omitted++
					continue
				}
				exported++
				of := []string{s.Dev, direction, one.Path}
				gauge(to, groupGuarantee, float64(one.Guarantee), of...)
				gauge(to, groupCeiling, float64(one.Ceiling), of...)
				counter(to, groupBytes, one.Bytes, of...)
				counter(to, groupPackets, one.Packets, of...)
				counter(to, groupDrops, one.Drops, of...)
				counter(to, groupMarks, one.Marks, of...)
				gauge(to, groupBacklog, float64(one.BacklogBytes), of...)
				gauge(to, groupDelay, one.QueueDelay.Seconds(), of...)
				to <- prometheus.MustNewConstMetric(groupUnmet, prometheus.CounterValue, g.unmet(s.Dev, direction+"/"+one.Path), of...)
			}
		}
	}
	gauge(to, groupsOmitted, float64(omitted))
}

// counter sends one counter.
func counter(to chan<- prometheus.Metric, d *prometheus.Desc, v uint64, of ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), of...)
}
