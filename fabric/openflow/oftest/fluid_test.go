package oftest

import (
	"math"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	of "headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/unit"
)

// near reports whether two rates or counts are equal but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b), 1) }

// frame1000 is a frame of 1,000 bytes from host a to host b of a line.
func (l *line) frame1000(a, b int) []byte {
	return UDPFrame(l.hosts[a].MAC(), l.hosts[b].MAC(), netip.AddrPortFrom(l.hosts[a].Addr(false), 1), netip.AddrPortFrom(l.hosts[b].Addr(false), 2), 1000)
}

// A stream advances the counters of all tables, flows and ports on its way by its rate.
func TestStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 3, Options{}, CableOptions{})
		l.connectAll()
		s := l.AddStream(l.hosts[0], l.frame1000(0, 2), 8e6) // 1,000 packets/s
		time.Sleep(2500 * ms)
		l.Advance()
		if !near(s.Delivered(l.hosts[2]), 8e6) || s.Delivered(l.hosts[1]) != 0 {
			t.Errorf("delivered %v", s.delivered)
		}
		if c := l.hosts[2].Count(); c.Packets != 2500 || c.Bytes != 2_500_000 {
			t.Errorf("the host received %+v", c)
		}
		for i, sw := range l.sw {
			for _, f := range sw.Flows() {
				want := uint64(0)
				if m, ok := f.Match.Get(of.FieldEthDst); ok && m.MAC() == mac(3) {
					want = 2500
				}
				if f.Packets != want || f.Bytes != 1000*want {
					t.Errorf("switch %d: flow %v: %d packets, %d bytes, want %d", i, f.Match, f.Packets, f.Bytes, want)
				}
			}
			if st := sw.tableStats()[0]; st.Lookups != 2500 || st.Matched != 2500 {
				t.Errorf("switch %d: table %+v", i, st)
			}
		}
		rx, _ := l.sw[1].PortStats(3)
		tx, _ := l.sw[1].PortStats(2)
		if rx.RxPackets != 2500 || tx.TxBytes != 2_500_000 {
			t.Errorf("ports: %+v, %+v", rx, tx)
		}
		s.SetRate(16e6)
		time.Sleep(500 * ms)
		l.wires[1].Lose(true, false)
		l.Advance() // the tables and cables as they are now count for the whole step
		if c := l.hosts[2].Count(); c.Packets != 2500 {
			t.Errorf("over a cable that loses: %+v", c)
		}
		l.wires[1].Lose(false, false)
		time.Sleep(500 * ms)
		s.Stop()
		time.Sleep(time.Second)
		l.Advance()
		if c := l.hosts[2].Count(); c.Packets != 3500 {
			t.Errorf("after the end: %+v, want 1,000 more", c)
		}
	})
}

// Streams over one cable get its capacity in proportion to their rates, and what is dropped at one is not offered to the
// next.
func TestStreamsShareCable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 3, Options{}, CableOptions{Capacity: 10e6})
		l.connectAll()
		a := l.AddStream(l.hosts[0], l.frame1000(0, 2), 12e6)
		b := l.AddStream(l.hosts[0], l.frame1000(0, 2), 8e6)
		c := l.AddStream(l.hosts[1], l.frame1000(1, 2), 10e6) // shares only the second cable
		time.Sleep(time.Second)
		l.Advance()
		at := l.hosts[2]
		if !near(a.Delivered(at), 3e6) || !near(b.Delivered(at), 2e6) || !near(c.Delivered(at), 5e6) {
			t.Errorf("delivered %v, %v, %v", a.Delivered(at), b.Delivered(at), c.Delivered(at))
		}
		first, _ := l.sw[0].PortStats(2)
		if first.TxBytes != 1_250_000 {
			t.Errorf("the first cable passed %d bytes, want 10 Mbit", first.TxBytes)
		}
	})
}

// A meter passes its rate, and its burst once.
func TestStreamMeter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 2, Options{}, CableOptions{})
		l.connectAll()
		do(t, l.sw[0], meterMod(of.MeterAdd, of.MeterKbps|of.MeterBurst, 1, drop(8000, 800)),
			flowMod(0, 20, of.Match{of.InPort(1)}, of.Meter{Meter: 1}, apply(output(2))))
		s := l.AddStream(l.hosts[0], l.frame1000(0, 1), 16e6)
		at := l.hosts[1]
		time.Sleep(time.Second)
		l.Advance()
		if !near(s.Delivered(at), 8.8e6) {
			t.Errorf("delivered %v in the first second, want the rate and the burst", s.Delivered(at))
		}
		time.Sleep(time.Second)
		l.Advance()
		if !near(s.Delivered(at), 8e6) {
			t.Errorf("delivered %v in the second second, want the rate", s.Delivered(at))
		}
		m := l.sw[0].Meters()[0]
		if m.Packets != 4000 || m.Bands[0].Packets != 4000-2100 || m.Bytes != 4_000_000 {
			t.Errorf("meter %+v", m)
		}
		do(t, l.sw[0], meterMod(of.MeterModify, of.MeterKbps|of.MeterBurst, 1, drop(4000, 1)))
		time.Sleep(time.Second)
		l.Advance()
		if m := l.sw[0].Meters()[0]; m.Packets != 2000 || !near(s.Delivered(at), 4.001e6) {
			t.Errorf("after the change: %+v, delivered %v", m, s.Delivered(at))
		}
	})
}

// A copy of a stream in each bucket of a group is a stream of its own.
func TestStreamGroup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 3, Options{}, CableOptions{})
		l.connectAll()
		do(t, l.sw[1], groupMod(of.GroupAdd, of.GroupTypeAll, 1, plain(0, output(1)), plain(0, of.PushVLAN{EthType: 0x8100}, output(2))),
			flowMod(0, 20, of.Match{of.InPort(3)}, apply(of.Group{Group: 1})))
		s := l.AddStream(l.hosts[0], l.frame1000(0, 2), 8e6)
		time.Sleep(time.Second)
		l.Advance()
		if !near(s.Delivered(l.hosts[1]), 8e6) || !near(s.Delivered(l.hosts[2]), 8.032e6) {
			t.Errorf("delivered %v and %v", s.Delivered(l.hosts[1]), s.Delivered(l.hosts[2]))
		}
		g := l.sw[1].groupStats(1)[0]
		if g.Packets != 1000 || g.Buckets[0].Packets != 1000 || g.Buckets[1].Bytes != 1_000_000 {
			t.Errorf("group %+v", g)
		}
	})
}

// A stream that loops ends, and is named.
func TestStreamLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 3, Options{}, CableOptions{})
		l.join(2, 0, CableOptions{})
		for _, s := range l.sw {
			do(t, s, flowMod(0, 1, nil, apply(output(of.PortFlood))))
		}
		s := l.AddStream(l.hosts[0], l.frame1000(0, 2), 1e6)
		time.Sleep(time.Second)
		l.Advance()
		if !s.Looped() {
			t.Error("the loop is not named")
		}
	})
}

// AdvanceEvery keeps flows with idle timeouts alive, and ends with stop.
func TestAdvanceEvery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 2, Options{}, CableOptions{})
		l.connectAll()
		do(t, l.sw[0], with(flowMod(0, 20, of.Match{of.InPort(1)}, apply(output(2))), func(m *of.FlowMod) { m.IdleTimeout = 3 }))
		stop := l.AdvanceEvery(time.Second)
		s := l.AddStream(l.hosts[0], l.frame1000(0, 1), 8e6)
		time.Sleep(time.Minute)
		if n := len(l.sw[0].Flows()); n != 4 {
			t.Errorf("%d flows, want 4", n)
		}
		s.Stop()
		time.Sleep(10 * time.Second)
		if n := len(l.sw[0].Flows()); n != 3 {
			t.Errorf("%d flows after the stream, want 3", n)
		}
		stop()
		synctest.Wait()
		if len(l.events) != 0 {
			t.Errorf("%d events are left", len(l.events))
		}
	})
}

// Streams and packets one by one give the same counters.
func TestFluidIsPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(t *rapid.T) {
			rate := rapid.IntRange(100, 3000).Draw(t, "packets/s")
			limit := rapid.Uint32Range(100, 20_000).Draw(t, "kbit/s")
			burst := rapid.Uint32Range(32, 2000).Draw(t, "burst") // 4 frames at least
			build := func() *line {
				l := newLine(t, 2, Options{}, CableOptions{Capacity: unit.Rate(1e9)})
				l.connectAll()
				do(l.t, l.sw[0], meterMod(of.MeterAdd, of.MeterKbps|of.MeterBurst, 1, drop(limit, burst)),
					flowMod(0, 20, of.Match{of.InPort(1)}, of.Meter{Meter: 1}, apply(output(2))))
				return l
			}
			a, b := build(), build()
			frame := a.frame1000(0, 1)
			a.AddStream(a.hosts[0], frame, unit.Rate(rate*8000))
			gap := time.Second / time.Duration(rate)
			for range rate {
				b.hosts[0].Send(frame)
				time.Sleep(gap)
			}
			a.Advance()
			time.Sleep(100 * ms)
			got, want := float64(a.hosts[1].Count().Packets), float64(b.hosts[1].Count().Packets)
			if math.Abs(got-want) > 3 { // packets that were begun, and the part of a token
				t.Fatalf("the stream delivered %v packets, the packets %v", got, want)
			}
			ma, mb := a.sw[0].Meters()[0], b.sw[0].Meters()[0]
			if math.Abs(float64(ma.Packets)-float64(mb.Packets)) > 1 || math.Abs(float64(ma.Bands[0].Packets)-float64(mb.Bands[0].Packets)) > 3 {
				t.Fatalf("the meters counted %+v and %+v", ma, mb)
			}
		})
	})
}
