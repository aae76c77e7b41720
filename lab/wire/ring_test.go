package wire

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// heldFrame is a copy of what the ring should hold.
type heldFrame struct {
	slot int
	data []byte
	left []int // segments that are not done
}

// In any order of arrivals and done segments, the memory of a held frame is not reused, and an empty
// ring has space. The oracle is a slice of copies.
func TestRingKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, err := newRing(rapid.IntRange(0, 10*maxFrame).Draw(t, "size"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.close()
		var held []heldFrame
		number := byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				space := r.space()
				if space == nil {
					if len(held) == 0 {
						t.Fatal("an empty ring has no space")
					}
					return
				}
				if len(space) != maxFrame {
					t.Fatalf("space for %d bytes", len(space))
				}
				n, segments := rapid.IntRange(1, maxFrame).Draw(t, "frame"), rapid.IntRange(1, 4).Draw(t, "segments")
				number++
				for i := range n {
					space[i] = number
				}
				h := heldFrame{data: bytes.Clone(space[:n])}
				for i := range segments {
					h.left = append(h.left, i)
				}
				h.slot = r.push(n, frame{segments: uint16(segments)})
				held = append(held, h)
				// The queue may drop the end of it.
				if keep := rapid.IntRange(0, segments).Draw(t, "keep"); keep < segments {
					for range segments - keep {
						r.done(h.slot)
					}
					if keep == 0 {
						held = held[:len(held)-1]
						return
					}
					size := rapid.IntRange(1, n).Draw(t, "size")
					r.shorten(h.slot, size)
					held[len(held)-1].data, held[len(held)-1].left = h.data[:size], h.left[:keep]
				}
			},
			"done": func(t *rapid.T) {
				if len(held) == 0 {
					return
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				h := &held[i]
				r.done(h.slot)
				if h.left = h.left[1:]; len(h.left) == 0 {
					held = append(held[:i], held[i+1:]...)
				}
			},
			"grow": func(t *rapid.T) { r.grow(rapid.IntRange(0, 12*maxFrame).Draw(t, "to")) },
			"": func(t *rapid.T) {
				for _, h := range held {
					if !bytes.Equal(r.bytes(h.slot), h.data) {
						t.Fatalf("the frame in slot %d has changed", h.slot)
					}
				}
			},
		})
	})
}

// A ring from which nothing is removed becomes and stays full, within its memory and its slots.
func TestRingIsBounded(t *testing.T) {
	for _, size := range []int{60, 1514, 65_000} {
		r, err := newRing(4 << 20)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; r.space() != nil; n++ {
			r.push(size, frame{segments: 1})
		}
		if n*size > len(r.data) || n < min(len(r.slots), len(r.data)/size/2) {
			t.Errorf("%d frames of %d bytes in %d", n, size, len(r.data))
		}
		r.grow(8 << 20)
		more := 0
		for ; r.space() != nil; more++ {
			r.push(size, frame{segments: 1})
		}
		if more < n*9/10 {
			t.Errorf("at twice the size it holds %d frames more than %d", more, n)
		}
		r.close()
	}
}

// There is memory for what a link holds at its rate, in any stage.
func TestRingSize(t *testing.T) {
	const second = 125_000_000 // bytes of 1 Gbit/s
	for name, c := range map[string]struct {
		spec link.Spec
		held float64 // seconds
	}{
		"delay and queue": {link.Spec{Delay: time.Second, Queue: link.Amount{Time: time.Second}}, 2},
		"queue in bytes":  {link.Spec{Queue: link.Amount{Bytes: second}}, 1},
		"sleeping sender": {link.Spec{Active: &link.Active{On: time.Millisecond, Off: time.Second}}, 1},
		"sleeping reader": {link.Spec{Suspension: &link.Suspension{Packets: 100, Time: time.Second}}, 1},
	} {
		c.spec.Rate = unit.Gbit
		if got := ringSize(&c.spec); got < int(1.25*c.held*second) || got > maxRing {
			t.Errorf("%s: %d bytes for %g s of 1 Gbit/s", name, got, c.held)
		}
	}
}

// A reference is one slot and one segment.
func TestReference(t *testing.T) {
	for _, c := range [][2]int{{0, 0}, {1, 2}, {maxSlots - 1, maxSegments - 1}} {
		if slot, segment := dereference(reference(c[0], c[1])); slot != c[0] || segment != c[1] {
			t.Errorf("%v comes back as %d, %d", c, slot, segment)
		}
	}
}
