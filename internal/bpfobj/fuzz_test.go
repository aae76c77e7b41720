package bpfobj

import "testing"

// FuzzConversion: the conversion between any two layouts stays within keys and values of their sizes, and back from a layout that has
// all members of the other the bytes are the same.
func FuzzConversion(f *testing.F) {
	f.Add([]byte{4, 1, 8, 2, 1, 16}, []byte{8, 1, 4, 2, 1, 4}, []byte("0123456789abcdef0123456789abcdef"))
	f.Add([]byte{}, []byte{0}, []byte{1})
	f.Fuzz(func(t *testing.T, from, to, data []byte) {
		old, next := layoutFrom(from), layoutFrom(to)
		there, err := NewConversion(old, next)
		if err != nil {
			return
		}
		key, value := make([]byte, old.Size), make([]byte, next.Size)
		copy(key, data)
		if !there.Copy(value, key) {
			return
		}
		sum := make([]byte, next.Size)
		next.AddDelta(sum, value, sum)
		back, err := NewConversion(next, old)
		if err != nil {
			t.Fatalf("there is a conversion to, and none back: %v", err)
		}
		again := make([]byte, old.Size)
		if !back.Copy(again, value) && len(to) == len(from) {
			t.Errorf("%v does not fit where it came from", value)
		}
	})
}

// layoutFrom returns a layout of numbers: pairs of the size of one and how many there are.
func layoutFrom(b []byte) (l Layout) {
	for i := 0; i+1 < len(b) && i < 20; i += 2 {
		element, count := 1<<(b[i]%4), int(b[i+1]%5)
		l.add(string(rune('a'+i)), l.Size, element, count)
		l.Size += element * count
	}
	return l
}
