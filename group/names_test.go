package group

import "testing"

// TestNames: the document of a device is found by any of its names.
func TestNames(t *testing.T) {
	names := AltNames{"eth0": {"enp0s3", "uplink"}, "lo": {"enloop"}, "hgi3": {"enown"}}
	for _, c := range []struct {
		kernel    string
		documents []string
		want      int
	}{
		{"eth0", nil, -1},
		{"eth0", []string{"*", "enp0s3", "eth0"}, 2},
		{"eth0", []string{"*", "uplink", "enp0s3"}, 1},
		{"eth0", []string{"eth1", "en*", "*"}, 1},
		{"eth0", []string{"eth1", "enp0s4", "en?0s4"}, -1},
		{"eth1", []string{"enp0s3", "en*"}, -1},
		{"lo", []string{"en*", "*"}, -1},
		{"lo", []string{"*", "enloop"}, 1},
		{"hgi3", []string{"en*", "*"}, -1},
	} {
		if got := names.Of(c.kernel, c.documents); got != c.want {
			t.Errorf("%s: got document %d of %q, want %d", c.kernel, got, c.documents, c.want)
		}
	}
	for name, want := range map[string]string{"uplink": "eth0", "eth0": "eth0", "eth9": "eth9", "en*": "en*"} {
		if got := names.Kernel(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := AltNames(nil).Kernel("eth0"); got != "eth0" || AltNames(nil).Of("eth0", []string{"eth*"}) != 0 {
		t.Errorf("without alternative names eth0 is %s", got)
	}
}
