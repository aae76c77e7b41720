package host

import "testing"

// Memory is given back once after the last connection, not while there is one, and not again before another.
func TestMemoryReturn(t *testing.T) {
	var m memoryReturn
	for n, conns := range []int{0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} {
		if got, want := m.observe(conns), n == 17; got != want {
			t.Errorf("measurement %d: %v, want %v", n, got, want)
		}
	}
}
