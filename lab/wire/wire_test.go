package wire_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/lab/wire"
	"headgate.dev/headgate/unit"
)

// healthy fails the test if frames were lost by anything but the link.
func healthy(t testing.TB, s wire.Stats) {
	t.Helper()
	if s.Dropped+s.Missed+s.Failed+s.Untraced > 0 {
		t.Errorf("frames were lost that the link did not drop: %+v", s)
	}
}

// TCP fills a link to the maximum for its framing, 1,448 of 1,514 bytes, in super-packets that are
// segmented:
//
//	a ══ rate, RTT ══ b
//
// 1 % allows for data in flight, and for stalls of the machine. So does the queue of 1 s, which
// exceeds TCP's buffers: at 1 Gbit/s TCP took seconds to recover from a queue that overflowed (-5 %).
func TestTCPFills(t *testing.T) {
	for _, c := range []struct {
		rate unit.Rate
		rtt  time.Duration
	}{{100 * unit.Mbit, 20 * time.Millisecond}, {unit.Gbit, 50 * time.Millisecond}} {
		t.Run(fmt.Sprint(c.rate), func(t *testing.T) {
			labtest.Try(t, func(t *labtest.Check) {
				r := newRig(t, [2]wire.Options{
					{Link: link.Spec{Rate: c.rate, Delay: c.rtt / 2, Queue: link.Amount{Time: time.Second}}},
					{Link: delay(c.rtt)},
				})
				stolen := steal()
				f := r.run(t, flow(traffic.TCP, traffic.Unlimited), 7*time.Second)
				s := r.Stats()
				got := f.Between(3*time.Second, 7*time.Second).DeliveredRate()
				t.Logf("%.2f Mbit/s, %+.3f %%, %.0f %% of the machine stolen, %+v", got/1e6, 100*(got/float64(c.rate)-1), 100*stolen(), s[0])
				if math.Abs(got/float64(c.rate)-1) > 0.01 {
					t.Errorf("%v carries %.0f bit/s", c.rate, got)
				}
				if s[0].Frames*4 > s[0].Segments {
					t.Errorf("%d frames for %d segments: there are no super-packets", s[0].Frames, s[0].Segments)
				}
				healthy(t, s[0])
				healthy(t, s[1])
			})
		})
	}
}

// Loss is drawn for each segment, also inside the super-packets of UDP_SEGMENT: as many datagrams are
// missing at the receiver as the link counts as lost, within 4 sigma of 2 %, and they are not
// neighbours: of 40,000, runs of 5 are expected once in ten thousand tests.
func TestLossIsPerSegment(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		labtest.Try(t, func(t *labtest.Check) {
			var log bytes.Buffer
			const p = 0.02
			r := newRig(t, [2]wire.Options{
				{Link: link.Spec{Delay: time.Millisecond, Loss: link.Loss{Probability: p}}, Trace: &log, Seed: uint64(time.Now().UnixNano())}, {},
			})
			f := flow(traffic.UDP, 250*unit.Mbit)
			f.IPv6 = ipv6
			res := r.run(t, f, 2*time.Second)
			check(t, r.Close())
			s := r.Stats()[0]
			t.Logf("%d sent, %d missing, %+v", res.Total.Datagrams, res.Total.LostDatagrams, s)
			n := float64(s.Segments + s.Lost)
			if off := float64(s.Lost) - p*n; n < 20_000 || math.Abs(off) > 4*math.Sqrt(p*(1-p)*n) {
				t.Errorf("%d of %.0f segments were lost, want %.0f", s.Lost, n, p*n)
			}
			if s.Frames*4 > s.Segments {
				t.Errorf("%d frames for %d segments: there are no super-packets", s.Frames, s.Segments)
			}
			healthy(t, s)
			trace, err := wire.ReadTrace(&log)
			check(t, err)
			records := trace.Records
			if trace.Missing > 0 || len(records) != int(s.Segments+s.Lost) {
				t.Errorf("%d records are in the log and %d missing, want %d", len(records), trace.Missing, s.Segments+s.Lost)
			}
			records = untilLast(records)
			lost, row, longest := 0, 0, 0
			for _, rec := range records {
				row++
				if rec.Fate == link.Lost {
					lost++
				} else {
					row = 0
				}
				longest = max(longest, row)
			}
			// The receiver has not read all of the last ms.
			if d := lost - int(res.Total.LostDatagrams); d < 0 || d > 10 {
				t.Errorf("%d datagrams are missing, %d segments were lost", res.Total.LostDatagrams, lost)
			}
			if longest > 5 {
				t.Errorf("%d segments in a row were lost", longest)
			}
		})
	}
}

// untilLast returns the records in order of arrival, up to the last that was delivered: the receiver
// cannot miss later ones.
func untilLast(records []wire.Record) []wire.Record {
	slices.SortFunc(records, func(a, b wire.Record) int { return int(a.Number) - int(b.Number) })
	for len(records) > 0 && records[len(records)-1].Fate != link.Delivered {
		records = records[:len(records)-1]
	}
	return records
}

// A queue of 20 segments holds at most 20, and the segments that it drops are those that are missing
// at the receiver. The log has the time at which each segment left the serialiser: one in 242 us.
func TestQueueIsBounded(t *testing.T) {
	labtest.Try(t, func(t *labtest.Check) {
		var log bytes.Buffer
		const rate, queue = 50 * unit.Mbit, 20
		r := newRig(t, [2]wire.Options{
			{Link: link.Spec{Rate: rate, Delay: time.Millisecond, Queue: link.Amount{Segments: queue}}, Trace: &log}, {},
		})
		f := r.run(t, flow(traffic.UDP, 250*unit.Mbit), 2*time.Second)
		check(t, r.Close())
		s := r.Stats()[0]
		t.Logf("%d datagrams, %+v", f.Total.Datagrams, s)
		healthy(t, s)
		trace, err := wire.ReadTrace(&log)
		check(t, err)
		each := int64(1514 * 8 * time.Second / time.Duration(rate))
		var waited int64
		dropped := 0
		for _, rec := range untilLast(trace.Records) {
			if rec.Fate == link.Overflowed {
				dropped++
			}
			if rec.Fate == link.Delivered && rec.Size == 1514 {
				waited = max(waited, rec.Departed-rec.Arrived)
			}
		}
		// The receiver has not read all of the last ms, which is a super-packet of 43.
		if d := dropped - int(f.Total.LostDatagrams); dropped < 10_000 || d < 0 || d > 3*43 {
			t.Errorf("%d segments were dropped, %d datagrams are missing", dropped, f.Total.LostDatagrams)
		}
		// 20 are queued, one is in the serialiser, and the segment's own time.
		if limit := (queue + 2) * each; waited > limit || waited < limit-2*each {
			t.Errorf("a segment waited for %v, want %v", time.Duration(waited), time.Duration(limit))
		}
	})
}

// A marking step sets CE for a sender with ECN, in IPv4 and IPv6, and TCP then stays below the queue
// limit without loss.
func TestMarksArrive(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		labtest.Try(t, func(t *labtest.Check) {
			r := newRig(t, [2]wire.Options{
				{Link: link.Spec{Rate: 100 * unit.Mbit, Delay: time.Millisecond, Mark: link.Amount{Segments: 30}, Queue: link.Amount{Time: time.Second}}},
				{Link: link.Spec{Delay: time.Millisecond}},
			})
			f := flow(traffic.TCP, traffic.Unlimited)
			f.IPv6 = ipv6
			f.Congestion = "reno"
			got, s := r.run(t, f, 2*time.Second).Total, r.Stats()[0]
			t.Logf("%d acknowledged with CE, %d retransmitted, %+v", got.DeliveredCE, got.Retransmits, s)
			if s.Marked == 0 || got.DeliveredCE == 0 || got.Retransmits > 0 || s.Overflowed > 0 {
				t.Errorf("%d segments were marked, %d acknowledged with CE, %d retransmitted, %d dropped", s.Marked, got.DeliveredCE, got.Retransmits, s.Overflowed)
			}
			healthy(t, s)
		})
	}
}

// A link's rate can change while it carries traffic: 10 Mbit/s, and from 2 s on 40. 3 % each, over 1
// s.
func TestChange(t *testing.T) {
	labtest.Try(t, func(t *labtest.Check) {
		spec := link.Spec{Rate: 10 * unit.Mbit, Delay: time.Millisecond}
		r := newRig(t, [2]wire.Options{{Link: spec}, {}})
		s, err := traffic.Start(t.Context(), r.host, []traffic.Flow{flow(traffic.UDP, 60*unit.Mbit)}, traffic.Options{Duration: 4 * time.Second})
		check(t, err)
		carries := func(want unit.Rate) {
			before := r.Stats()[0]
			time.Sleep(time.Second)
			after := r.Stats()[0]
			got := float64(after.Bytes-before.Bytes) * 8 / (after.Duration - before.Duration).Seconds()
			t.Logf("%.3f Mbit/s", got/1e6)
			if math.Abs(got/float64(want)-1) > 0.03 {
				t.Errorf("%v carries %.0f bit/s", want, got)
			}
		}
		time.Sleep(500 * time.Millisecond)
		carries(spec.Rate)
		spec.Rate = 40 * unit.Mbit
		r.Change(0, spec)
		time.Sleep(200 * time.Millisecond)
		carries(spec.Rate)
		s.Wait()
	})
}

// Virtual cross traffic takes its part without frames: 60 of 100 Mbit/s, every 202 us, so that UDP
// with a demand of 100 gets at most 40 and the queue's share.
func TestCross(t *testing.T) {
	labtest.Try(t, func(t *labtest.Check) {
		r := newRig(t, [2]wire.Options{
			{Link: link.Spec{Rate: 100 * unit.Mbit, Cross: []link.Cross{{Load: 60 * unit.Mbit, Model: link.Constant}}}}, {},
		})
		time.Sleep(2 * time.Second)
		s := r.Stats()[0]
		got := float64(s.CrossBytes) * 8 / s.Duration.Seconds()
		t.Logf("%+v", s)
		if math.Abs(got/60e6-1) > 0.03 || s.CrossLostBytes > 0 {
			t.Errorf("%.2f of 60 Mbit/s of cross traffic crossed, %d bytes were lost", got/1e6, s.CrossLostBytes)
		}
		r.run(t, flow(traffic.UDP, 100*unit.Mbit), 2*time.Second)
		after := r.Stats()[0]
		all := float64(after.CrossBytes-s.CrossBytes+after.Bytes-s.Bytes) * 8 / (after.Duration - s.Duration).Seconds()
		t.Logf("%+v", after)
		if math.Abs(all/100e6-1) > 0.05 || after.CrossLostBytes == 0 || after.Overflowed == 0 {
			t.Errorf("together %.2f of 100 Mbit/s crossed; %d bytes and %d segments were dropped", all/1e6, after.CrossLostBytes, after.Overflowed)
		}
	})
}

// An exact link writes every segment alone and at its own time: 9 of 10 within 0.2 ms, whereas
// together they are up to 0.25 apart.
func TestExact(t *testing.T) {
	labtest.Try(t, func(t *labtest.Check) {
		var log bytes.Buffer
		r := newRig(t, [2]wire.Options{
			{Link: link.Spec{Rate: 100 * unit.Mbit, Delay: 5 * time.Millisecond}, Exact: true, Trace: &log}, {Link: link.Spec{Delay: 5 * time.Millisecond}},
		})
		r.run(t, flow(traffic.TCP, 90*unit.Mbit), 2*time.Second)
		check(t, r.Close())
		s := r.Stats()[0]
		trace, err := wire.ReadTrace(&log)
		check(t, err)
		var late []int64
		for _, rec := range trace.Records {
			late = append(late, rec.Written-rec.Released)
		}
		slices.Sort(late)
		if len(late) < 1000 || s.Writes != s.Segments {
			t.Fatalf("%d records; %d writes for %d segments", len(late), s.Writes, s.Segments)
		}
		if late[0] < 0 {
			t.Errorf("a segment was written %v before its time", time.Duration(-late[0]))
		}
		p50, p90 := time.Duration(late[len(late)/2]), time.Duration(late[len(late)*9/10])
		t.Logf("late by %v at the median, %v at p90; %+v", p50, p90, s)
		if p90 > 200*time.Microsecond {
			t.Errorf("segments are late by %v at p90", p90)
		}
	})
}

// Data beyond the memory is dropped and counted: a sender that sleeps for 1 s sends 100 MB, and has
// memory for 8. The rest is delivered when it wakes.
func TestRingFull(t *testing.T) {
	r := newRig(t, [2]wire.Options{{Link: link.Spec{Active: &link.Active{On: 10 * time.Millisecond, Off: time.Second}}}, {}})
	res := r.run(t, flow(traffic.UDP, 800*unit.Mbit), 3*time.Second)
	s := r.Stats()[0]
	t.Logf("%d missing, %+v", res.Total.LostDatagrams, s)
	if s.Dropped == 0 || s.Bytes < 8<<20 || s.Overflowed+s.Failed > 0 {
		t.Errorf("with frames in 8 MiB of memory: %+v", s)
	}
}

// Layer-2 traffic other than IP passes unchanged, and a super-packet within a VLAN is cut like one
// without.
func TestLayer2(t *testing.T) {
	r := newRig(t, both(wire.Options{Link: link.Spec{Delay: time.Millisecond, Rate: 10 * unit.Mbit}}))
	t.Run("frames", func(t *testing.T) { testFrames(t, r) })
	t.Run("vlan", func(t *testing.T) { testVLAN(t, r) })
}

// Frames without IP arrive byte for byte. The kernel removes an outer tag before it passes them on.
func testFrames(t *testing.T, r *rig) {
	a, b := r.hosts["a"], r.hosts["b"]
	from, to := a.packetSocket(t), b.packetSocket(t)
	inner := []byte("\x81\x00\x00\x07\x12\x34 within two VLANs, of no known type")
	for name, c := range map[string]struct{ sent, comes []byte }{
		"lldp":            {sent: append(ethernet(net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 0x0e}, a.mac, 0x88cc), "\x02\x07\x04 chassis and port of a switch"...)},
		"two tags":        {append(append(ethernet(b.mac, a.mac, 0x88a8), 0, 5), inner...), append(append(bytes.Clone(b.mac), a.mac...), inner...)},
		"an unknown type": {sent: append(ethernet(b.mac, a.mac, 0x9999), bytes.Repeat([]byte{7}, 1500)...)},
	} {
		if c.comes == nil {
			c.comes = c.sent
		}
		_, err := unix.Write(from, c.sent)
		check(t, err)
		if got := receive(t, to, c.sent[:12]); !bytes.Equal(got, c.comes) {
			t.Errorf("%s: %x came as %x", name, c.sent, got)
		}
	}
}

func ethernet(to, from net.HardwareAddr, typ uint16) []byte {
	return binary.BigEndian.AppendUint16(append(bytes.Clone(to), from...), typ)
}

// receive waits for a frame with these addresses.
func receive(t *testing.T, fd int, addresses []byte) []byte {
	t.Helper()
	buf := make([]byte, 1<<16)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		n, err := unix.Read(fd, buf)
		if err == nil && n >= 14 && bytes.Equal(buf[:12], addresses) {
			return bytes.Clone(buf[:n])
		}
		if err != nil {
			time.Sleep(time.Millisecond)
		}
	}
	t.Fatal("no frame arrived within 10 s")
	return nil
}

// packetSocket receives and sends all frames of the host's device.
func (h *host) packetSocket(t *testing.T) (fd int) {
	check(t, h.Do(func() (err error) {
		all := int(binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}))
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK, all)
		if err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: h.index, Protocol: uint16(all)})
	}))
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// A super-packet within a VLAN that is passed to the device with its vnet header (PACKET_VNET_HDR)
// arrives in the segments that gopacket builds: at 10 Mbit/s they are 0.8 ms apart, too far to be
// written together.
func testVLAN(t *testing.T, r *rig) {
	b, want := wire.TaggedSuper(t)
	from, to := r.hosts["a"].packetSocket(t), r.hosts["b"].packetSocket(t)
	const vnetHeader = 15 // PACKET_VNET_HDR (linux/if_packet.h)
	check(t, unix.SetsockoptInt(from, unix.SOL_PACKET, vnetHeader, 1))
	before := r.Stats()[0]
	_, err := unix.Write(from, b)
	check(t, err)
	for i, w := range want {
		if got := receive(t, to, w[:12]); !bytes.Equal(got, w) {
			t.Errorf("segment %d came as\n%x, want\n%x", i, got, w)
		}
	}
	time.Sleep(10 * time.Millisecond)
	after := r.Stats()[0]
	if frames, writes := after.Frames-before.Frames, after.Writes-before.Writes; frames > writes/2 {
		t.Errorf("%d frames were read and %d written: it was not a super-packet", frames, writes)
	}
}
