package lab

import "testing"

// A new device counts as left.
func TestRemains(t *testing.T) {
	all, err := devices()
	if err != nil || len(all) == 0 {
		t.Fatalf("devices %v, %v", all, err)
	}
	for _, before := range [][]string{all, all[1:]} {
		if n, err := remains("there-is-no-such-lab", before); err != nil || n != len(all)-len(before) {
			t.Errorf("%d things are left, %v, with %v before and %v after", n, err, before, all)
		}
	}
}
