package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// Whatever comes and goes, the oldest frame is the one that came first, whole,
// and no frame's memory is given to another while it is held. The oracle is a
// slice of copies.
func TestRingIsAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRing(rapid.IntRange(0, 10*maxFrame).Draw(t, "size"))
		var want [][]byte
		number := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				space := r.space()
				if space == nil {
					if len(want) == 0 {
						t.Fatal("an empty ring has no space")
					}
					return
				}
				if len(space) != maxFrame {
					t.Fatalf("space for %d bytes", len(space))
				}
				n := rapid.IntRange(8, maxFrame).Draw(t, "frame")
				number++
				for i := range n {
					space[i] = byte(number)
				}
				binary.BigEndian.PutUint64(space, number)
				want = append(want, bytes.Clone(space[:n]))
				r.push(n, int64(number))
			},
			"pop": func(t *rapid.T) {
				frame, due, ok := r.first()
				if ok != (len(want) > 0) {
					t.Fatalf("first says %v with %d frames held", ok, len(want))
				}
				if !ok {
					return
				}
				if !bytes.Equal(frame, want[0]) || due != int64(binary.BigEndian.Uint64(want[0])) {
					t.Fatalf("frame %d of %d bytes, want %d of %d", binary.BigEndian.Uint64(frame), len(frame), binary.BigEndian.Uint64(want[0]), len(want[0]))
				}
				r.pop()
				want = want[1:]
			},
		})
	})
}

// A ring without a reader fills and stays full, within its memory.
func TestRingIsBounded(t *testing.T) {
	r := newRing(1 << 20)
	n := 0
	for ; r.space() != nil; n++ {
		r.push(1514, 0)
	}
	if n*1514 > len(r.data) || n < len(r.data)/1514/2 {
		t.Errorf("%d frames in %d bytes", n, len(r.data))
	}
}
