package htb

import (
	"testing"
	"time"

	"headgate/group"
	"headgate/unit"
)

// What a leaf is made of, with fq_codel and without, on an MTU of 1,500 bytes.
func TestLeaf(t *testing.T) {
	const frame = 1550
	for _, c := range []struct {
		what               string
		guarantee, ceiling unit.Rate
		overhead           group.Overhead
		bytes              uint32 // of one FIFO
		memory             uint32 // of fq_codel
		segment            bool
		target, interval   time.Duration
	}{
		{"20 ms at the ceiling", 50 * unit.Mbit, 100 * unit.Mbit, group.Overhead{}, 250_000, 375_000, true, 5 * time.Millisecond, 100 * time.Millisecond},
		{"100 ms at the guarantee", 10 * unit.Mbit, 100 * unit.Mbit, group.Overhead{}, 125_000, 187_500, true, 5 * time.Millisecond, 100 * time.Millisecond},
		{"16 packets, and two may wait", unit.Mbit, unit.Mbit, group.Overhead{}, 16 * frame, 24 * frame, true, 24800 * time.Microsecond, 119800 * time.Microsecond},
		{"no guarantee: by the ceiling", 0, 2 * unit.Mbit, group.Overhead{}, 16 * frame, 24 * frame, true, 12400 * time.Microsecond, 107400 * time.Microsecond},
		{"next to nothing", 8 * unit.BitPerSecond, unit.Mbit, group.Overhead{}, 16 * frame, 24 * frame, true, time.Second, 1095 * time.Millisecond},
		{"super-packets stay whole", unit.Gbit, 10 * unit.Gbit, group.Overhead{}, 12_500_000, 12_500_000, false, 5 * time.Millisecond, 100 * time.Millisecond},
		{"split only below 1.05 Gbit/s", 0, 1050 * unit.Mbit, group.Overhead{}, 1050e6 / 8 / 50, 1050e6 / 8 / 50, false, 5 * time.Millisecond, 100 * time.Millisecond},
		{"four of them take 100 ms", 24 * unit.Mbit, 2 * unit.Gbit, group.Overhead{}, 300_000, 300_000, false, 5 * time.Millisecond, 100 * time.Millisecond},
		{"and are too long for a small guarantee", 10 * unit.Mbit, 2 * unit.Gbit, group.Overhead{}, 125_000, 187_500, true, 5 * time.Millisecond, 100 * time.Millisecond},
		{"each packet has an overhead", unit.Gbit, 2 * unit.Gbit, group.Overhead{Frame: 24}, 5_000_000, 7_500_000, true, 5 * time.Millisecond, 100 * time.Millisecond},
	} {
		b := builder{link: facts{mtu: 1500, overhead: c.overhead}}
		l := b.leaf(c.guarantee, c.ceiling)
		segment := uint32(0)
		if c.segment {
			segment = frame
		}
		if l.fifo.Limit != c.bytes || l.fifo.Segment != segment || l.flows.Flows != 0 || l.behind() {
			t.Errorf("%s, one queue: %+v", c.what, l)
		}
		b.link.flowQueues = true
		q := b.leaf(c.guarantee, c.ceiling)
		if q.behind() != c.segment || c.segment && q.fifo != l.fifo || !c.segment && q.kind() != "fq_codel" {
			t.Errorf("%s: %+v, want fq_codel behind %+v only if that splits", c.what, q, l)
		}
		near := func(got, want time.Duration) bool { return got <= want && got > want-1024*2 }
		f := q.flows
		if f.Memory != c.memory || f.Flows != 256 || f.Quantum != frame || f.Packets < f.Memory/64 || !f.ECN ||
			!near(f.Target.Duration(), c.target) || !near(f.Interval.Duration(), c.interval) {
			t.Errorf("%s: %+v, target %v, interval %v", c.what, f, f.Target.Duration(), f.Interval.Duration())
		}
	}
}
