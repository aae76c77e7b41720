package host

import "testing"

// The windows follow the machine's memory up to a bound.
func TestWindows(t *testing.T) {
	for _, c := range []struct{ memory, conn, session int }{{1 << 30, 32 << 20, 128 << 20}, {4 << 30, 128 << 20, 512 << 20}, {64 << 30, 256 << 20, 1 << 30}} {
		if w := windowsOf(uint64(c.memory)); w.ConnWindow != c.conn || w.SessionWindow != c.session {
			t.Errorf("%d bytes: %+v, want %d and %d", c.memory, w, c.conn, c.session)
		}
	}
	if windows.SessionWindow == 0 {
		t.Error("this machine has no windows")
	}
}
