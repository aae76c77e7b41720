package train

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"headgate.dev/headgate/probe"
)

// pair returns two flows to each other, over loopback.
func pair(t *testing.T, host string) (from, to *Flow) {
	t.Helper()
	open := func() *Socket {
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(host), 0)))
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	a, b := open(), open()
	return a.Join(7, b.Local()), b.Join(7, a.Local())
}

// send sends a train over loopback and collects it.
func send(t *testing.T, from, to *Flow, number uint32, train probe.Train) (Sent, Received) {
	t.Helper()
	s, err := from.Send(t.Context(), number, train)
	if err != nil {
		t.Fatal(err)
	}
	r, err := to.Collect(t.Context(), number, train.Count())
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// All packets arrive, in order, with timestamps, over IPv4 and IPv6.
func TestLoopback(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		from, to := pair(t, host)
		for i, train := range []probe.Train{
			probe.Uniform("", 1000, 1500, 0),
			probe.Uniform("", 100, 1500, 100e6),
			{Parts: []probe.Part{{Count: 2, Size: 500}, {Count: 2, Size: 500, Pause: 5 * time.Millisecond}, {Count: 200, Size: 100, Rate: 50e6}}},
			probe.Uniform("", 1, 1500, 0),
		} {
			s, r := send(t, from, to, uint32(i)+1, train)
			if len(s.At) != train.Count() || len(r.Arrived) != train.Count() || r.Overflow != 0 {
				t.Fatalf("%s, train %d: %d sent, %d arrived, %d overflowed", host, i, len(s.At), len(r.Arrived), r.Overflow)
			}
			for j, a := range r.Arrived {
				if a.Number != j || a.At < time.Now().Add(-time.Minute).UnixNano() || a.At > time.Now().UnixNano() {
					t.Fatalf("%s, train %d: arrival %d is %+v", host, i, j, a)
				}
			}
			sample := probe.Sample{Train: train, Sent: s.At, Arrived: r.Arrived}
			t.Logf("%s: %d packets sent at %.0f Mbit/s, arrived at %.0f, late by %v", host, train.Count(), sample.SendingRate()/1e6, sample.ArrivalRate()/1e6, s.Delay)
		}
	}
}

// The pause and the rate of a part are kept, except for Delay and the time of a first
// call.
func TestPaced(t *testing.T) {
	from, to := pair(t, "127.0.0.1")
	train := probe.Train{Parts: []probe.Part{{Count: 50, Size: 1000, Rate: 40e6}, {Count: 50, Size: 1000, Rate: 40e6, Pause: 20 * time.Millisecond}}}
	s, _ := send(t, from, to, 1, train)
	gap := float64(1014*8) / 40e6 * 1e9
	want := 98*gap + 20e6
	took := float64(s.At[99] - s.At[0])
	if took < want-50_000 || took > want+float64(s.Delay)+50_000 {
		t.Errorf("the train took %.0f ns, and was late by %v: want %.0f", took, s.Delay, want)
	}
}

// A collection waits no longer than necessary for lost packets, and reports duplicates.
func TestMissing(t *testing.T) {
	from, to := pair(t, "127.0.0.1")
	train := probe.Uniform("", 10, 500, 0)
	if _, err := from.Send(t.Context(), 1, train); err != nil {
		t.Fatal(err)
	}
	if _, err := from.Send(t.Context(), 1, probe.Uniform("", 2, 500, 0)); err != nil {
		t.Fatal(err)
	}
	r, err := to.Collect(t.Context(), 1, 12)
	if err != nil || len(r.Arrived) != 12 {
		t.Errorf("%d arrived, %v", len(r.Arrived), err)
	}
	begun := time.Now()
	if r, err = to.Collect(t.Context(), 2, 5); err != nil || len(r.Arrived) != 0 || time.Since(begun) < ArrivalTimeout {
		t.Errorf("a train that was not sent: %d arrived in %v, %v", len(r.Arrived), time.Since(begun), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err = to.Collect(ctx, 3, 5); err == nil {
		t.Error("Collect ignores the end of its context")
	}
	to.socket.Close()
	if _, err = to.Collect(t.Context(), 4, 5); err == nil {
		t.Error("Collect ignores the end of the socket")
	}
}

// A cancelled train stops and returns the cause, unless it was sent completely before.
func TestCancelled(t *testing.T) {
	from, _ := pair(t, "127.0.0.1")
	const all = 2000 // 20 ms
	for range 50 {
		why := errors.New("cancelled by the test")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Millisecond, func() { cancel(why) })
		sent, err := from.Send(ctx, 1, probe.Uniform("", all, 500, 400e6))
		if err == nil && len(sent.At) < all || err != nil && !errors.Is(err, why) {
			t.Fatalf("%d packets were sent, %v", len(sent.At), err)
		}
		cancel(nil)
	}
}

// Packets are sent also without GSO.
func TestWithoutGSO(t *testing.T) {
	from, to := pair(t, "127.0.0.1")
	o := sender{flow: from, number: 1, done: t.Context().Done(), largest: 1472, noGSO: true}
	o.prepare()
	if o.run(probe.Uniform("", 200, 1500, 0)); o.err != nil {
		t.Fatal(o.err)
	}
	r, err := to.Collect(t.Context(), 1, 200)
	if err != nil || len(r.Arrived) != 200 {
		t.Errorf("%d arrived, %v", len(r.Arrived), err)
	}
}

// A header is parsed as it was written; anything else is rejected.
func TestHeader(t *testing.T) {
	b := make([]byte, headerSize)
	for _, h := range []Header{{Data, 1, 2, 3}, Header{Kind: Proof, Session: 1 << 63}.WithNonce(1<<63 + 5)} {
		h.Put(b)
		if got, ok := ParseHeader(b); !ok || got != h {
			t.Errorf("%+v parses as %+v, %v", h, got, ok)
		}
	}
	for _, bad := range [][]byte{nil, b[:19], []byte("HGp\x20aaaaaaaaaaaaaaaa"), []byte("HGp\x1faaaaaaaaaaaaaaaa"), []byte("XXp\x10aaaaaaaaaaaaaaaa")} {
		if h, ok := ParseHeader(bad); ok {
			t.Errorf("%q parses as %+v", bad, h)
		}
	}
}

func FuzzAncillary(f *testing.F) {
	f.Add([]byte{16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 35, 0, 0, 0})
	f.Fuzz(func(_ *testing.T, b []byte) { ancillary(b) })
}
