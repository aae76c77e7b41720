package stripe

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// Chunks in any order, with duplicates, come out as the bytes that were cut, each once.
func TestReassembly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "text")
		type chunk struct{ from, to int }
		var chunks []chunk
		for at := 0; at < len(text); {
			to := min(at+rapid.IntRange(1, 60).Draw(t, "size"), len(text))
			chunks = append(chunks, chunk{at, to})
			at = to
		}
		order := append(chunks, rapid.SliceOfN(rapid.SampledFrom(append(chunks, chunk{})), 0, 10).Draw(t, "again")...)
		order = rapid.Permutation(order).Draw(t, "order")
		var r reassembly
		var got []byte
		for _, c := range order {
			if _, err := r.insert(uint64(c.from), text[c.from:c.to], c.to == len(text)); err != nil {
				t.Fatalf("chunk %v: %v", c, err)
			}
			if rapid.Bool().Draw(t, "pop") {
				for data := r.pop(); data != nil; data = r.pop() {
					got = append(got, data...)
				}
			}
			for n, s := range r.spans {
				if s.from >= s.to || n > 0 && r.spans[n-1].to >= s.from {
					t.Fatalf("spans %v", r.spans)
				}
			}
		}
		for data := r.pop(); data != nil; data = r.pop() {
			got = append(got, data...)
		}
		if !bytes.Equal(got, text) || r.bytes != 0 || len(r.spans) != 0 || len(r.chunks) != 0 {
			t.Fatalf("delivered %d bytes of %d, %d are left", len(got), len(text), r.bytes)
		}
		if len(chunks) > 0 && !r.finished() {
			t.Fatal("the direction has not finished")
		}
	})
}

// A peer that cuts the bytes differently, or sends some after the end, is found.
func TestReassemblyErrors(t *testing.T) {
	data := make([]byte, 100)
	for name, insert := range map[string]func(r *reassembly) error{
		"overlaps one before": func(r *reassembly) error { _, err := r.insert(120, data[:20], false); return err },
		"overlaps one after":  func(r *reassembly) error { _, err := r.insert(40, data[:70], false); return err },
		"contains one":        func(r *reassembly) error { _, err := r.insert(90, data[:80], false); return err },
		"another size":        func(r *reassembly) error { _, err := r.insert(100, data[:49], false); return err },
		"within what is gone": func(r *reassembly) error { _, err := r.insert(5, data[:20], false); return err },
		"end before the data": func(r *reassembly) error { _, err := r.insert(50, data[:10], true); return err },
		"another end": func(r *reassembly) error {
			r.insert(300, data, true)
			_, err := r.insert(200, data[:50], true)
			return err
		},
		"data after the end":   func(r *reassembly) error { r.insert(300, data, true); _, err := r.insert(400, data, false); return err },
		"empty, and later end": func(r *reassembly) error { r.insert(300, data, true); _, err := r.insert(500, nil, true); return err },
	} {
		r := &reassembly{}
		r.insert(0, data[:10], false)
		r.pop()
		if _, err := r.insert(100, data[:50], false); err != nil {
			t.Fatal(err)
		}
		if err := insert(r); !errors.Is(err, errPeer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
