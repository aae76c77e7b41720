package host

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestQueueFull(t *testing.T) {
	stream := func(rtt, least uint32, sent, lost uint64) *unix.TCPInfo {
		return &unix.TCPInfo{Rtt: 1000 * rtt, Min_rtt: 1000 * least, Bytes_sent: sent, Bytes_retrans: lost}
	}
	before := []*unix.TCPInfo{stream(20, 20, 1e6, 1e4), stream(20, 20, 1e6, 0)}
	after := []*unix.TCPInfo{stream(30, 20, 1e8, 1e4), stream(30, 20, 1e8, 0)}
	for name, c := range map[string]struct {
		looks [][]*unix.TCPInfo
		after []*unix.TCPInfo
		want  bool
	}{
		"never empty":                     {[][]*unix.TCPInfo{after, after}, after, true},
		"empty at one look":               {[][]*unix.TCPInfo{after, before, after}, after, false},
		"a new stream saw the queue":      {[][]*unix.TCPInfo{{stream(30, 20, 0, 0), stream(30, 30, 0, 0)}}, after, true},
		"a short path":                    {[][]*unix.TCPInfo{{{Rtt: 300, Min_rtt: 100}}}, after, false},
		"jitter without a queue":          {[][]*unix.TCPInfo{{{Rtt: 30000, Min_rtt: 20000, Rttvar: 5000, Bytes_sent: 1e8}}}, after, false},
		"a queue and some jitter":         {[][]*unix.TCPInfo{{{Rtt: 60000, Min_rtt: 20000, Rttvar: 5000, Bytes_sent: 1e8}}}, after, true},
		"losses":                          {[][]*unix.TCPInfo{after}, []*unix.TCPInfo{stream(30, 20, 1e8, 1e7), stream(30, 20, 1e8, 0)}, false},
		"a stream has ended":              {[][]*unix.TCPInfo{after}, after[:1], true},
		"the only stream has ended":       {[][]*unix.TCPInfo{after}, nil, false},
		"no stream at one look":           {[][]*unix.TCPInfo{after, nil}, after, false},
		"nothing was looked at":           {nil, after, false},
		"the least time is not known yet": {[][]*unix.TCPInfo{{stream(30, 0, 0, 0)}}, after, false},
	} {
		q := queue{before: before}
		for _, l := range c.looks {
			q.look(l)
		}
		if got := q.full(c.after); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
