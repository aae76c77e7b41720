package metrics

import (
	"cmp"
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/live"
)

// maxLinks is the maximum number of links that are exported, each direction of a cable as one, chosen by this project: those of 3,000
// cables make a scrape of 5 MB. Only the number of the other links is exported.
const maxLinks = 6000

// Network is what a controller knows of the network of switches.
type Network struct {
	// Leads reports that it leads the switches. If it does not, Status is the zero value.
	Leads  bool
	Status live.Status
}

// NewNetwork returns the collector of the network of switches. Only the leader exports switches and links, so that each exists once.
// read returns nil on a controller that accepts no switches. Hosts are counted, and have no metrics of their own: there are too many.
func NewNetwork(read func() *Network) prometheus.Collector { return network{read} }

type network struct{ read func() *Network }

var (
	switchLabels = []string{"switch", "name"}
	linkLabels   = []string{"from", "to"}

	networkLeader  = prometheus.NewDesc("headgate_network_leader", "1 if this controller leads the switches. Only this one has the other metrics of the network.", nil, nil)
	networkSettled = prometheus.NewDesc("headgate_network_settled", "1 if every switch has the flows and groups that it should.", nil, nil)
	networkCount   = prometheus.NewDesc("headgate_network_switches", "Number of switches that are connected.", nil, nil)
	networkLinks   = prometheus.NewDesc("headgate_network_links", "Number of links that are up, each direction of a cable as one.", nil, nil)
	networkHosts   = prometheus.NewDesc("headgate_network_hosts", "Number of hosts that are known.", nil, nil)
	networkFaults  = prometheus.NewDesc("headgate_network_faults", "Number of faults, by their kind: one-way, looped, shared, miswired, duplicate-id, missing-port, weak-link or missing-relay.", []string{"kind"}, nil)
	linksOmitted   = prometheus.NewDesc("headgate_network_links_not_exported", "Number of links that are not exported, beyond the first 6000.", nil, nil)

	networkPacketIns = prometheus.NewDesc("headgate_network_packet_ins_total", "Packets that switches have sent to the controller.", nil, nil)
	networkDropped   = prometheus.NewDesc("headgate_network_dropped_packet_ins_total", "Packets of them that were dropped, because they came faster than the controller looks at those of one port.", nil, nil)
	networkForged    = prometheus.NewDesc("headgate_network_forged_frames_total", "Discovery frames that no controller of the network has made, or that came where there can be no link.", nil, nil)
	networkAnswered  = prometheus.NewDesc("headgate_network_answered_requests_total", "ARP requests and neighbour solicitations that the controller has answered.", nil, nil)
	networkFlooded   = prometheus.NewDesc("headgate_network_flooded_frames_total", "Frames that the controller has sent to all ports of hosts.", nil, nil)
	networkUnflooded = prometheus.NewDesc("headgate_network_dropped_floods_total", "Frames to unknown destinations that the controller has not sent to all ports of hosts, because there were too many from one port or in all.", nil, nil)
	networkPlans     = prometheus.NewDesc("headgate_network_plans_total", "How often it was computed what all switches should have.", nil, nil)
	networkResyncs   = prometheus.NewDesc("headgate_network_resyncs_total", "How often all flows, groups and meters of a switch were read and compared.", nil, nil)
	networkErrors    = prometheus.NewDesc("headgate_network_errors_total", "How often a switch refused a message, or did not take what it should have.", nil, nil)

	switchUp      = prometheus.NewDesc("headgate_network_switch_up", "1 if the switch is connected, 0 if it is listed in the network's file or was connected a minute ago.", switchLabels, nil)
	switchCurrent = prometheus.NewDesc("headgate_network_switch_current", "1 if the connected switch has the flows and groups that it should.", switchLabels, nil)
	switchSurplus = prometheus.NewDesc("headgate_network_switch_surplus_ports", "Number of ports of the connected switch that are not used, beyond the first 1024.", switchLabels, nil)
	switchUnknown = prometheus.NewDesc("headgate_network_switch_unknown_structures_total", "Messages of the switch, and match fields, actions and other parts of them, that are of experimenters or of types that OpenFlow 1.3 does not define, since it connected.", switchLabels, nil)
	switchRemoved = prometheus.NewDesc("headgate_network_switch_removed", "1 for ten minutes after the switch was removed from the network's file, or may no longer connect.", switchLabels, nil)

	linkUp          = prometheus.NewDesc("headgate_network_link_up", "1 if the link is up, 0 if it is not and is listed in the network's file.", linkLabels, nil)
	linkRemoved     = prometheus.NewDesc("headgate_network_link_removed", "1 for ten minutes after the link or its switch was removed from the network's file, or has another name.", linkLabels, nil)
	linkCapacity    = prometheus.NewDesc("headgate_network_link_capacity_bits_per_second", "Capacity of the link, in layer 2.", linkLabels, nil)
	linkUtilisation = prometheus.NewDesc("headgate_network_link_utilisation_ratio", "Rate between the last two readings of the sending port, divided by the capacity.", linkLabels, nil)
	linkBytes       = prometheus.NewDesc("headgate_network_link_transmit_bytes_total", "Bytes that the sending port has counted, in layer 2.", linkLabels, nil)
	linkTxDropped   = prometheus.NewDesc("headgate_network_link_transmit_dropped_packets_total", "Packets that the sending port has dropped, if it counts them.", linkLabels, nil)
	linkTxErrors    = prometheus.NewDesc("headgate_network_link_transmit_errors_total", "Packets that the sending port could not send, if it counts them.", linkLabels, nil)
	linkRxDropped   = prometheus.NewDesc("headgate_network_link_receive_dropped_packets_total", "Packets that the receiving port has dropped, if it counts them.", linkLabels, nil)
	linkRxErrors    = prometheus.NewDesc("headgate_network_link_receive_errors_total", "Packets that the receiving port has received damaged, if it counts them.", linkLabels, nil)
)

// Describe implements prometheus.Collector.
func (network) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{networkLeader, networkSettled, networkCount, networkLinks, networkHosts, networkFaults, linksOmitted,
		networkPacketIns, networkDropped, networkForged, networkAnswered, networkFlooded, networkUnflooded, networkPlans, networkResyncs, networkErrors,
		switchUp, switchCurrent, switchSurplus, switchUnknown, switchRemoved, linkUp, linkRemoved, linkCapacity, linkUtilisation, linkBytes, linkTxDropped, linkTxErrors, linkRxDropped, linkRxErrors} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c network) Collect(to chan<- prometheus.Metric) {
	now := c.read()
	if now == nil {
		return
	}
	gauge(to, networkLeader, boolValue(now.Leads))
	if !now.Leads {
		return
	}
	s := now.Status
	gauge(to, networkSettled, boolValue(s.Settled))
	gauge(to, networkLinks, float64(len(s.Links)))
	gauge(to, networkHosts, float64(len(s.Hosts)))
	for _, kind := range fabric.FaultKinds {
		count := 0
		for _, f := range s.Faults {
			if f.Kind == kind {
				count++
			}
		}
		gauge(to, networkFaults, float64(count), string(kind))
	}
	counter(to, networkPacketIns, s.Counters.PacketIns)
	counter(to, networkDropped, s.Counters.Dropped)
	counter(to, networkForged, s.Counters.Forged)
	counter(to, networkAnswered, s.Counters.Answered)
	counter(to, networkFlooded, s.Counters.Flooded)
	counter(to, networkUnflooded, s.Counters.DroppedFloods)
	counter(to, networkPlans, s.Counters.Plans)
	counter(to, networkResyncs, s.Counters.Resyncs)
	counter(to, networkErrors, s.Counters.Errors)
	collectSwitches(to, s)
	collectLinks(to, s)
}

func collectSwitches(to chan<- prometheus.Metric, s live.Status) {
	connected := 0
	for _, one := range s.Switches {
		up := one.Address != ""
		gauge(to, switchUp, boolValue(up), one.ID.String(), one.Name)
		if up {
			connected++
			gauge(to, switchCurrent, boolValue(one.Current), one.ID.String(), one.Name)
			gauge(to, switchSurplus, float64(one.SurplusPorts), one.ID.String(), one.Name)
			counter(to, switchUnknown, one.UnknownStructures, one.ID.String(), one.Name)
		}
	}
	for _, one := range s.Missing {
		gauge(to, switchUp, 0, one.ID.String(), one.Name)
	}
	for _, one := range s.Removed {
		gauge(to, switchRemoved, 1, one.ID.String(), one.Name)
	}
	gauge(to, networkCount, float64(connected))
}

func collectLinks(to chan<- prometheus.Metric, s live.Status) {
	names := map[fabric.DPID]string{}
	for _, one := range s.Switches {
		names[one.ID] = one.Name
	}
	for _, one := range s.Missing {
		names[one.ID] = one.Name
	}
	ends := func(id fabric.LinkID) []string {
		label := func(p fabric.PortID) string {
			return cmp.Or(names[p.Switch], p.Switch.String()) + "/" + p.Port.String()
		}
		return []string{label(id.From), label(id.To)}
	}
	for n, l := range s.Links {
		if n == maxLinks {
			break
		}
		of := ends(l.LinkID)
		gauge(to, linkUp, 1, of...)
		gauge(to, linkCapacity, float64(l.Capacity), of...)
		if !math.IsNaN(l.Rate) {
			gauge(to, linkUtilisation, l.Rate/float64(l.Capacity), of...)
		}
		counted := func(d *prometheus.Desc, at fabric.PortCounters, v uint64) {
			if !at.At.IsZero() && v != fabric.Uncounted {
				counter(to, d, v, of...)
			}
		}
		counted(linkBytes, l.Sends, l.Sends.Tx.Bytes)
		counted(linkTxDropped, l.Sends, l.Sends.Tx.Dropped)
		counted(linkTxErrors, l.Sends, l.Sends.Tx.Errors)
		counted(linkRxDropped, l.Receives, l.Receives.Rx.Dropped)
		counted(linkRxErrors, l.Receives, l.Receives.Rx.Errors)
	}
	for _, id := range s.MissingLinks {
		gauge(to, linkUp, 0, ends(id)...)
	}
	for _, l := range s.RemovedLinks[:min(len(s.RemovedLinks), maxLinks)] {
		gauge(to, linkRemoved, 1, l.From, l.To)
	}
	gauge(to, linksOmitted, float64(max(0, len(s.Links)-maxLinks)))
}
