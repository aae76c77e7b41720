package host

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// A path carries data if one of its streams does; its round-trip time is the longest.
func TestSummarize(t *testing.T) {
	suspect, closed := StreamStatus{State: StreamSuspect, RTT: 3 * time.Millisecond}, StreamStatus{State: StreamClosed, Error: "refused"}
	open := StreamStatus{State: StreamOpen, RTT: time.Millisecond, SendRate: 8, ReceiveRate: 16}
	for _, c := range []struct {
		streams []StreamStatus
		want    PathSummary
	}{
		{nil, PathSummary{State: StreamClosed}},
		{[]StreamStatus{closed}, PathSummary{State: StreamClosed, Closed: 1, Failure: "refused"}},
		{[]StreamStatus{suspect, closed}, PathSummary{State: StreamSuspect, Open: 1, Suspect: 1, Closed: 1, RTT: 3 * time.Millisecond, Failure: "refused"}},
		{[]StreamStatus{open, suspect, open}, PathSummary{State: StreamOpen, Open: 3, Suspect: 1, RTT: 3 * time.Millisecond, SendRate: 16, ReceiveRate: 32}},
		{[]StreamStatus{{State: StreamRetired}}, PathSummary{State: StreamOpen, Open: 1}},
	} {
		if got := Summarize(c.streams); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.streams, got, c.want)
		}
	}
}

// A bounded status has the connections and entries with the highest rates, in the order of the whole, and counts the
// rest; totals and summaries stay. The whole one is not changed.
func TestBound(t *testing.T) {
	conn := func(port uint16, rate uint64) ConnectionStatus {
		return ConnectionStatus{Client: netip.AddrPortFrom(netip.IPv4Unspecified(), port), ReceiveRate: rate, Began: time.Unix(int64(port), 0)}
	}
	peer := func(address string, rates ...uint64) PeerStatus {
		p := PathStatus{Name: "a"}
		for _, r := range rates {
			p.Streams = append(p.Streams, StreamStatus{State: StreamOpen, SendRate: r})
		}
		return PeerStatus{Address: address, Paths: []PathStatus{p.sum()}}
	}
	all := Status{
		Exits:       []PeerStatus{peer("x", 1, 2)},
		Entries:     []PeerStatus{peer("1", 5), peer("2", 1, 1), peer("3", 9)},
		Connections: []ConnectionStatus{conn(1, 10), conn(2, 0), conn(3, 30), conn(4, 20)},
		Total:       TotalStatus{Connections: 4},
	}
	got := all.Bound(2, 3, 2)
	if want := (Omitted{Connections: 2, Streams: 2 + 1, Entries: 1}); got.Omitted == nil || *got.Omitted != want {
		t.Errorf("omitted %+v, want %+v", got.Omitted, want)
	}
	if c := got.Connections; len(c) != 2 || c[0].Client.Port() != 3 || c[1].Client.Port() != 4 {
		t.Errorf("connections %+v", c)
	}
	if e := got.Entries; len(e) != 2 || e[0].Address != "1" || e[1].Address != "3" || len(e[0].Paths[0].Streams) != 1 || len(e[1].Paths[0].Streams) != 0 || e[1].Paths[0].Open != 1 {
		t.Errorf("entries %+v", e)
	}
	if got.Total.Connections != 4 || len(all.Entries) != 3 || all.Entries[1].Address != "2" || all.Connections[0].Client.Port() != 1 || len(all.Entries[2].Paths[0].Streams) != 1 {
		t.Errorf("the whole status became %+v", all)
	}
	whole := all.Bound(4, 5, 3)
	if whole.Omitted == nil || *whole.Omitted != (Omitted{Streams: 1}) {
		t.Errorf("omitted %+v, want one stream", whole.Omitted)
	}
	if whole = all.Bound(4, 6, 3); whole.Omitted != nil || !slices.EqualFunc(whole.Connections, all.Connections, func(a, b ConnectionStatus) bool { return a.Client == b.Client }) {
		t.Errorf("%+v", whole)
	}
}
