package host

import (
	"cmp"
	"slices"
	"time"
)

// PathSummary sums up the streams of a path.
type PathSummary struct {
	// State is "open" if a stream carries data, "suspect" if all open ones make no progress, and "closed" if none is
	// open.
	State StreamState `json:"state"`
	// Open, Suspect and Closed are numbers of streams. Suspect ones are open.
	Open    int `json:"open_streams"`
	Suspect int `json:"suspect_streams"`
	Closed  int `json:"closed_streams"`
	// RTT is the longest round-trip time of the streams, 0 if none is open.
	RTT time.Duration `json:"rtt_ns"`
	// SendRate and ReceiveRate are those of all streams.
	SendRate    uint64 `json:"send_rate_bps"`
	ReceiveRate uint64 `json:"receive_rate_bps"`
	// Failure is why a closed stream is not open.
	Failure string `json:"error,omitempty"`
}

// Summarize sums up the streams of a path.
func Summarize(streams []StreamStatus) PathSummary {
	out := PathSummary{State: StreamClosed}
	for _, st := range streams {
		if st.State == StreamClosed {
			out.Closed++
		} else {
			out.Open++
		}
		if st.State == StreamSuspect {
			out.Suspect++
		}
		out.RTT = max(out.RTT, st.RTT)
		out.SendRate, out.ReceiveRate = out.SendRate+st.SendRate, out.ReceiveRate+st.ReceiveRate
		out.Failure = cmp.Or(out.Failure, st.Error)
	}
	switch {
	case out.Open > out.Suspect:
		out.State = StreamOpen
	case out.Open > 0:
		out.State = StreamSuspect
	}
	return out
}

// ReorderQueueLimit returns the most bytes that the reorder queue of a connection can have: its credit.
func ReorderQueueLimit() int { return windows.ConnWindow }

// Omitted are numbers of what a bounded status leaves out.
type Omitted struct {
	Connections int `json:"connections,omitempty"`
	Streams     int `json:"streams,omitempty"`
	Entries     int `json:"entries,omitempty"`
}

// Bound returns the status with at most so many connections and entries, those with the highest rates, and with the
// details of at most so many streams. The totals and the summaries of paths stay those of all.
func (s Status) Bound(connections, streams, entries int) Status {
	var out Omitted
	if out.Connections = len(s.Connections) - connections; out.Connections > 0 {
		s.Connections = slices.Clone(s.Connections)
		slices.SortStableFunc(s.Connections, func(a, b ConnectionStatus) int {
			return cmp.Compare(b.SendRate+b.ReceiveRate, a.SendRate+a.ReceiveRate)
		})
		s.Connections = s.Connections[:connections]
		sortConnections(s.Connections)
	}
	if out.Entries = len(s.Entries) - entries; out.Entries > 0 {
		s.Entries = slices.Clone(s.Entries)
		slices.SortStableFunc(s.Entries, func(a, b PeerStatus) int { return cmp.Compare(b.rate(), a.rate()) })
		for _, p := range s.Entries[entries:] {
			for _, path := range p.Paths {
				out.Streams += len(path.Streams)
			}
		}
		s.Entries = s.Entries[:entries]
		sortPeers(s.Entries)
	}
	for _, peers := range []*[]PeerStatus{&s.Exits, &s.Entries} {
		*peers = slices.Clone(*peers)
		for n := range *peers {
			paths := slices.Clone((*peers)[n].Paths)
			for m := range paths {
				keep := min(streams, len(paths[m].Streams))
				out.Streams += len(paths[m].Streams) - keep
				paths[m].Streams = paths[m].Streams[:keep]
				streams -= keep
			}
			(*peers)[n].Paths = paths
		}
	}
	out.Connections, out.Entries = max(0, out.Connections), max(0, out.Entries)
	if out != (Omitted{}) {
		s.Omitted = &out
	}
	return s
}

func (p PeerStatus) rate() (sum uint64) {
	for _, path := range p.Paths {
		sum += path.SendRate + path.ReceiveRate
	}
	return sum
}

// sortConnections sorts connections, the oldest first.
func sortConnections(all []ConnectionStatus) {
	slices.SortFunc(all, func(a, b ConnectionStatus) int {
		return cmp.Or(a.Began.Compare(b.Began), a.Client.Compare(b.Client))
	})
}

func sortPeers(all []PeerStatus) {
	slices.SortStableFunc(all, func(a, b PeerStatus) int { return cmp.Compare(a.Address, b.Address) })
}
