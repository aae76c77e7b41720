package host

import "testing"

// Memory is given back once after the last connection, not while there is one, and not again before another. It is given back
// once more when streams have been closed.
func TestMemoryReturn(t *testing.T) {
	var m memoryReturn
	for n, conns := range []int{0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} {
		if got, want := m.observe(conns, 8), n == 17; got != want {
			t.Errorf("measurement %d: %v, want %v", n, got, want)
		}
	}
	for n, streams := range []int{8, 40, 40, 30, 8, 8, 8, 8} {
		if got, want := m.observe(0, streams), n == 5; got != want {
			t.Errorf("measurement %d with %d streams: %v, want %v", n, streams, got, want)
		}
	}
	m.observe(1, 40)
	for n, streams := range []int{40, 8, 8, 8, 8, 8, 8} {
		if got, want := m.observe(0, streams), n == 4; got != want {
			t.Errorf("measurement %d after a connection: %v, want %v", n, got, want)
		}
	}
}
