package fabric

import (
	"net"
	"testing"
)

func TestNumbered(t *testing.T) {
	a, b := net.HardwareAddr{1, 2, 3, 4, 5, 6}, net.HardwareAddr{2, 0, 0, 0, 0, 9}
	f := numbered(a, b, 7, 1<<20)
	if sender, n, ok := readNumbered(f); !ok || sender != 7 || n != 1<<20 || len(f) != 60 {
		t.Errorf("%d %d %v of %d bytes", sender, n, ok, len(f))
	}
	f[15]++
	if _, _, ok := readNumbered(f); ok {
		t.Error("another frame is read")
	}
	if _, _, ok := readNumbered(f[:20]); ok {
		t.Error("a short frame is read")
	}
}

func TestTally(t *testing.T) {
	full := tally{}
	for at := 1; at <= 3; at++ {
		for sender := uint32(1); sender <= 3; sender++ {
			if at != int(sender) {
				full[copyKey{at, sender, 0}], full[copyKey{at, sender, 1}] = 1, 1
			}
		}
	}
	if extra, lost, most := full.count(3, 2); extra != 0 || lost != 0 || most != 1 || full.storms() != 0 {
		t.Errorf("%d extra, %d lost, most %d, %d storms", extra, lost, most, full.storms())
	}
	full[copyKey{1, 1, 0}] = 2 // back at its sender, twice
	full[copyKey{2, 1, 1}] = 12
	full[copyKey{3, 1, 1}] = 30 // the same storm
	delete(full, copyKey{3, 2, 0})
	if extra, lost, most := full.count(3, 2); extra != 2+11+29 || lost != 1 || most != 30 || full.storms() != 1 {
		t.Errorf("%d extra, %d lost, most %d, %d storms", extra, lost, most, full.storms())
	}
}
