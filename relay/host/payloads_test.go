package host

import "testing"

// What is used again stays, and what was not used is given up over time.
func TestPayloadList(t *testing.T) {
	var l payloadList
	first := l.get()
	l.put(first)
	if l.get() != first {
		t.Error("memory was not used again")
	}
	l.put(first)
	for range 100 {
		l.put(new([65536]byte))
	}
	l.trim() // all have come since
	for range 3 {
		b := l.get()
		l.trim()
		l.put(b)
	}
	if n := len(l.free); n < 1 || n > 101/4+1 {
		t.Errorf("%d pieces are kept after three trims, of 101", n)
	}
	for range 20 {
		l.trim()
	}
	if len(l.free) != 0 {
		t.Errorf("%d pieces are kept that nothing uses", len(l.free))
	}
}
