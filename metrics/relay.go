package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"headgate.dev/headgate/relay/host"
)

// NewRelay returns the collector of the agent of "headgate relay run".
func NewRelay(status func() host.Status) prometheus.Collector { return relayAgent{status} }

type relayAgent struct{ status func() host.Status }

var (
	pathLabels = []string{"peer", "path"}

	relayConnections = prometheus.NewDesc("headgate_relay_connections", "Number of connections of applications that the relay agent carries.", nil, nil)
	relayEnded       = prometheus.NewDesc("headgate_relay_connections_ended_total", "Connections that have ended.", nil, nil)
	relayFailed      = prometheus.NewDesc("headgate_relay_connections_failed_total", "Connections that ended with an error.", nil, nil)
	relaySent        = prometheus.NewDesc("headgate_relay_sent_bytes_total", "Payload that was read from connections of this agent, for the other agent.", nil, nil)
	relayReceived    = prometheus.NewDesc("headgate_relay_received_bytes_total", "Payload that came from the other agent, and was written to connections of this agent.", nil, nil)
	relayWaiting     = prometheus.NewDesc("headgate_relay_waiting_bytes", "Payload of applications that no stream has taken yet.", nil, nil)
	relayUnread      = prometheus.NewDesc("headgate_relay_unread_bytes", "Payload that arrived in order, and that applications have not taken yet.", nil, nil)
	relayReordering  = prometheus.NewDesc("headgate_relay_reordering_bytes", "Payload in the reorder queue.", nil, nil)
	relayLongest     = prometheus.NewDesc("headgate_relay_longest_reorder_queue_bytes", "Payload in the reorder queue of the connection that has most of it.", nil, nil)
	relayLimit       = prometheus.NewDesc("headgate_relay_reorder_queue_limit_bytes", "Most payload that the reorder queue of a connection can have.", nil, nil)

	pathStreams   = prometheus.NewDesc("headgate_relay_path_streams", "Number of open streams of the path, to an exit or from an entry.", pathLabels, nil)
	pathSuspect   = prometheus.NewDesc("headgate_relay_path_suspect_streams", "Number of open streams of the path that make no progress.", pathLabels, nil)
	pathRoundTrip = prometheus.NewDesc("headgate_relay_path_round_trip_seconds", "Longest smoothed round-trip time of the path's streams, if one is open.", pathLabels, nil)
	pathSent      = prometheus.NewDesc("headgate_relay_path_sent_bytes_total", "Payload sent to an exit over the path, and acknowledged by it, since the session began.", pathLabels, nil)
	pathReceived  = prometheus.NewDesc("headgate_relay_path_received_bytes_total", "Payload received from an exit over the path since the session began.", pathLabels, nil)
)

// Describe implements prometheus.Collector.
func (relayAgent) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{relayConnections, relayEnded, relayFailed, relaySent, relayReceived, relayWaiting, relayUnread, relayReordering, relayLongest, relayLimit,
		pathStreams, pathSuspect, pathRoundTrip, pathSent, pathReceived} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c relayAgent) Collect(to chan<- prometheus.Metric) {
	s := c.status()
	counter := func(d *prometheus.Desc, v uint64, of ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), of...)
	}
	gauge(to, relayConnections, float64(s.Total.Connections))
	counter(relayEnded, s.Total.Ended)
	counter(relayFailed, s.Total.Failed)
	counter(relaySent, s.Total.Sent)
	counter(relayReceived, s.Total.Received)
	gauge(to, relayWaiting, float64(s.Total.Waiting))
	gauge(to, relayUnread, float64(s.Total.Unread))
	gauge(to, relayReordering, float64(s.Total.Reordering))
	longest := 0
	for _, k := range s.Connections {
		longest = max(longest, k.Reordering)
	}
	gauge(to, relayLongest, float64(longest))
	gauge(to, relayLimit, float64(host.ReorderQueueLimit()))
	for _, p := range s.Exits {
		for _, path := range p.Paths {
			counter(pathSent, path.Sent, p.Address, path.Name)
			counter(pathReceived, path.Received, p.Address, path.Name)
		}
	}
	for key, p := range pathsOf(s) {
		gauge(to, pathStreams, float64(p.Open), key[:]...)
		gauge(to, pathSuspect, float64(p.Suspect), key[:]...)
		if p.RTT > 0 {
			gauge(to, pathRoundTrip, p.RTT.Seconds(), key[:]...)
		}
	}
}

// pathsOf returns the paths by their labels. Two entries may have the same address, and a metric may exist only once:
// their streams count together. Their bytes are left out, because those of a session are lost when it ends.
func pathsOf(s host.Status) map[[2]string]host.PathSummary {
	streams := map[[2]string][]host.StreamStatus{}
	for _, peers := range [][]host.PeerStatus{s.Exits, s.Entries} {
		for _, p := range peers {
			for _, path := range p.Paths {
				key := [2]string{p.Address, path.Name}
				streams[key] = append(streams[key], path.Streams...)
			}
		}
	}
	all := map[[2]string]host.PathSummary{}
	for key, of := range streams {
		all[key] = host.Summarize(of)
	}
	return all
}
