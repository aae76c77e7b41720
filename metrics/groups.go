package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"headgate/shaper"
)

// mostGroups are told of; of what is beyond them only the number. Ours: a host of 16,000 groups
// would give a scrape of 15 MB.
const mostGroups = 2000

// Groups are the bandwidth groups in force on this host's devices, as they were read last, and for how
// many seconds a group ("out/web") has not had its guarantee.
func Groups(states func() []shaper.State, unmet func(dev, group string) float64) prometheus.Collector {
	return groups{states, unmet}
}

type groups struct {
	states func() []shaper.State
	unmet  func(dev, group string) float64
}

var (
	ofGroup = []string{"dev", "direction", "group"}

	groupGuarantee = prometheus.NewDesc("headgate_group_guarantee_bits_per_second", "What the group always has, of layer 2.", ofGroup, nil)
	groupCeiling   = prometheus.NewDesc("headgate_group_ceiling_bits_per_second", "What it never passes.", ofGroup, nil)
	groupBytes     = prometheus.NewDesc("headgate_group_delivered_bytes_total", "What it carried, of layer 2.", ofGroup, nil)
	groupPackets   = prometheus.NewDesc("headgate_group_delivered_packets_total", "Packets that it carried.", ofGroup, nil)
	groupDrops     = prometheus.NewDesc("headgate_group_dropped_packets_total", "Packets that its queue had no room for.", ofGroup, nil)
	groupMarks     = prometheus.NewDesc("headgate_group_marked_packets_total", "Packets that were marked with CE.", ofGroup, nil)
	groupBacklog   = prometheus.NewDesc("headgate_group_backlog_bytes", "What waits in its queue.", ofGroup, nil)
	groupDelay     = prometheus.NewDesc("headgate_group_queue_delay_seconds", "How long the packet that left last had waited; 0 of an idle group.", ofGroup, nil)
	groupUnmet     = prometheus.NewDesc("headgate_group_unmet_seconds_total", "For how long a queue stood, and was served more slowly than the guarantee.", ofGroup, nil)
	groupsLeftOut  = prometheus.NewDesc("headgate_groups_left_out", "Groups beyond the 2000 that are told of.", nil, nil)
)

// Describe is part of prometheus.Collector.
func (g groups) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{groupGuarantee, groupCeiling, groupBytes, groupPackets, groupDrops, groupMarks, groupBacklog, groupDelay, groupUnmet, groupsLeftOut} {
		to <- d
	}
}

// Collect is part of prometheus.Collector.
func (g groups) Collect(to chan<- prometheus.Metric) {
	told, left := 0, 0
	for _, s := range g.states() {
		for direction, d := range map[string]*shaper.DirectionState{"out": s.Out, "in": s.In} {
			if d == nil {
				continue
			}
			for _, one := range d.Groups {
				if told == mostGroups {
					left++
					continue
				}
				told++
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
	gauge(to, groupsLeftOut, float64(left))
}

func counter(to chan<- prometheus.Metric, d *prometheus.Desc, v uint64, of ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), of...)
}
