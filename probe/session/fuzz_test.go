package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// FuzzLines feeds lines of a hostile client to the parts of a server. The server must not
// accept a line that is too long, send a train beyond the caps, or measure to a peer that
// is not on the list.
func FuzzLines(f *testing.F) {
	for _, m := range []message{
		{Proof: &proof{[]byte("mac")}}, {Open: &open{Version}}, {Bye: &bye{}}, {Refused: "no"}, {Wait: &wait{3}},
		{Measure: &measure{Version, "[fd00::2]:4950", json.RawMessage(`{"bytes":"1MB"}`)}},
		{Progress: &progress{"measuring"}}, {Measured: &measured{Failed: "no"}},
		{Train: &trainRequest{1, true, probe.Train{Parts: []probe.Part{{Count: 100, Size: 1500}, {Count: 3, Size: 200, Rate: unit.Mbit, Pause: time.Millisecond}}}}},
		{Sent: &sent{Number: 1, At: probe.Deltas{1, 2, 3}}}, {Arrived: &arrived{Number: 1, Packet: probe.Deltas{0, 1}, At: probe.Deltas{5, 6}}},
		{Welcome: &welcome{Version, 7, Default, 4950}}, {Ready: &ready{1500, "[::1]:4950"}},
	} {
		b, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(b, '\n'))
	}
	f.Add([]byte(`{"train":{"train":{"parts":[{"count":1048576,"size":65535,"rate":"1bit","pause":3600000000000}]}}}` + "\n"))
	s := &Server{Peers: []probe.Address{{Host: "192.0.2.1", Port: probe.Port}}}
	s.Measure = func(context.Context, probe.Address, json.RawMessage, func(string)) (json.RawMessage, error) {
		return nil, nil
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const longest = 4096
		in := bufio.NewReader(bytes.NewReader(b))
		l := &lines{in: in, longest: longest}
		left := allowance{caps: Caps{Bytes: 1_000_000, Rate: unit.Gbit, Time: time.Second}, ends: time.Now().Add(time.Second)}
		for {
			m, err := l.read()
			if err != nil {
				break
			}
			if m.Measure != nil {
				if peer, err := s.allowed(m.Measure.Peer); err == nil && !slices.Contains(s.Peers, peer) {
					t.Errorf("server measures to %s, which is not a peer", peer)
				}
			}
			if m.Train == nil {
				continue
			}
			if wait, err := left.check(m.Train.Train, time.Now()); err == nil && wait <= 0 {
				if left.count(m.Train.Train, time.Now()); left.spent > left.caps.Bytes {
					t.Errorf("server sends %s, more than its cap", left.spent)
				}
			}
		}
	})
}
