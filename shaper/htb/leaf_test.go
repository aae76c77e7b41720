package htb

import (
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// TestLeaf: the queues of a leaf, with fq_codel and without, with an MTU of 1,500 bytes.
func TestLeaf(t *testing.T) {
	const frame, write = 1550, 320 * 1024
	for _, c := range []struct {
		what               string
		guarantee, ceiling unit.Rate
		overhead           group.Overhead
		bytes              uint32 // of one FIFO
		memory             uint32 // of fq_codel
		whole              uint32 // the largest packet that passes unsplit; 0: any
		target, interval   time.Duration
	}{
		{"one write, 0.6 ms", 50 * unit.Mbit, 100 * unit.Mbit, group.Overhead{}, write, write * 3 / 2, 5 * frame, 5 * time.Millisecond, 100 * time.Millisecond},
		{"20 ms at the ceiling", 50 * unit.Mbit, 200 * unit.Mbit, group.Overhead{}, 500_000, 750_000, 10 * frame, 5 * time.Millisecond, 100 * time.Millisecond},
		{"independent of the guarantee", unit.Mbit, 200 * unit.Mbit, group.Overhead{}, 500_000, 750_000, 10 * frame, 24800 * time.Microsecond, 119800 * time.Microsecond},
		{"two packets may wait", unit.Mbit, unit.Mbit, group.Overhead{}, write, write * 3 / 2, frame, 24800 * time.Microsecond, 119800 * time.Microsecond},
		{"no guarantee: by the ceiling", 0, 2 * unit.Mbit, group.Overhead{}, write, write * 3 / 2, frame, 12400 * time.Microsecond, 107400 * time.Microsecond},
		{"tiny guarantee", 8 * unit.BitPerSecond, unit.Mbit, group.Overhead{}, write, write * 3 / 2, frame, time.Second, 1095 * time.Millisecond},
		{"super-packets are split below 0.93 Gbit/s", unit.Mbit * 100, 800 * unit.Mbit, group.Overhead{}, 2_000_000, 3_000_000, 39 * frame, 5 * time.Millisecond, 100 * time.Millisecond},
		{"super-packets pass unsplit", unit.Gbit, 10 * unit.Gbit, group.Overhead{}, 25_000_000, 25_000_000, 0, 5 * time.Millisecond, 100 * time.Millisecond},
		{"each packet has an overhead", unit.Gbit, 2 * unit.Gbit, group.Overhead{Frame: 24}, 5_000_000, 7_500_000, frame, 5 * time.Millisecond, 100 * time.Millisecond},
	} {
		b := builder{link: linkFacts{mtu: 1500, overhead: c.overhead}}
		l := b.leaf(c.guarantee, c.ceiling)
		segment := c.whole > 0
		if l.fillLimit() != c.bytes || l.fifo.Segment != c.whole || l.flows.Flows != 0 || l.flowsAreChild() {
			t.Errorf("%s, one queue: %+v", c.what, l)
		}
		b.link.flowQueues = true
		q := b.leaf(c.guarantee, c.ceiling)
		if q.flowsAreChild() != segment || segment && q.fifo != l.fifo || !segment && q.kind() != "fq_codel" {
			t.Errorf("%s: %+v, want fq_codel below %+v only if that splits", c.what, q, l)
		}
		near := func(got, want time.Duration) bool { return got <= want && got > want-1024*2 }
		f := q.flows
		if f.Memory != c.memory || f.Flows != 256 || f.Quantum != frame || f.Packets < f.Memory/64 || !f.ECN ||
			!near(f.Target.Duration(), c.target) || !near(f.Interval.Duration(), c.interval) {
			t.Errorf("%s: %+v, target %v, interval %v", c.what, f, f.Target.Duration(), f.Interval.Duration())
		}
	}
}
