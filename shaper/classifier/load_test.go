package classifier

import "testing"

func TestFragmentsFor(t *testing.T) {
	for cpus, want := range map[int]uint32{1: 1024, 2: 2048, 6: 8192, 64: 65536, 1024: 65536} {
		if got := fragmentsFor(cpus); got != want {
			t.Errorf("fragmentsFor(%d) = %d, want %d", cpus, got, want)
		}
	}
}
