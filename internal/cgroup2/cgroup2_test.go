package cgroup2

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

func TestMount(t *testing.T) {
	for name, c := range map[string]struct {
		mountinfo string
		want      mounted
	}{
		"unified": {"22 1 0:21 / /proc rw - proc proc rw\n30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n", mounted{"/sys/fs/cgroup", "/"}},
		"hybrid":  {"30 22 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 22 0:27 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n", mounted{"/sys/fs/cgroup/unified", "/"}},
		"space":   {"31 22 0:27 / /mnt/a\\040b rw - cgroup2 none rw\n", mounted{"/mnt/a b", "/"}},
		"a part":  {"31 22 0:27 /docker/a\\040b /sys/fs/cgroup ro - cgroup2 none rw\n", mounted{"/sys/fs/cgroup", "/docker/a b"}},
	} {
		if got, err := mount(strings.NewReader(c.mountinfo)); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	if _, err := mount(strings.NewReader("22 1 0:21 / /proc rw - proc proc rw\n")); err == nil || !strings.Contains(err.Error(), "mount -t cgroup2") {
		t.Errorf("no mount: %v", err)
	}
	if _, err := Mount(); err != nil {
		t.Skipf("no cgroup v2 hierarchy: %v", err)
	}
}

// The error distinguishes a cgroup that does not exist from a failed search.
func TestIDOfNone(t *testing.T) {
	if _, err := Mount(); err != nil {
		t.Skipf("no cgroup v2 hierarchy: %v", err)
	}
	if _, err := ID("/there-is-no-such-cgroup/at-all"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing cgroup: %v", err)
	}
	if _, err := ID("/cgroup.procs/a"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("path below a file: %v", err)
	}
	if _, err := mountOf("no process"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without /proc: %v", err)
	}
}
