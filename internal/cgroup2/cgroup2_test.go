package cgroup2

import (
	"strings"
	"testing"
)

func TestMount(t *testing.T) {
	for name, c := range map[string]struct{ mountinfo, want string }{
		"unified": {"22 1 0:21 / /proc rw - proc proc rw\n30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n", "/sys/fs/cgroup"},
		"hybrid":  {"30 22 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 22 0:27 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n", "/sys/fs/cgroup/unified"},
		"space":   {"31 22 0:27 / /mnt/a\\040b rw - cgroup2 none rw\n", "/mnt/a b"},
	} {
		if got, err := mount(strings.NewReader(c.mountinfo)); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := mount(strings.NewReader("22 1 0:21 / /proc rw - proc proc rw\n")); err == nil || !strings.Contains(err.Error(), "mount -t cgroup2") {
		t.Errorf("without a mount: %v", err)
	}
	if _, err := Mount(); err != nil {
		t.Skipf("this machine has none: %v", err)
	}
}
