package labtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"headgate.dev/headgate/internal/cgroup2"
)

// Cgroup moves this process, the sockets that it opens from now on and the programs that it
// starts into a cgroup v2 of its own until the test ends, and gives its path. It is for
// tests that run alone: what others start meanwhile would be in it, too.
func Cgroup(t testing.TB) (path string) {
	t.Helper()
	root, err := cgroup2.Mount()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	before := root
	for line := range strings.Lines(string(text)) {
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			before = filepath.Join(root, at)
		}
	}
	path = filepath.Join(root, fmt.Sprintf("headgate-test-%d", os.Getpid()))
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	Enter(t, path)
	t.Cleanup(func() {
		Enter(t, before)
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	})
	return path
}

// Enter moves this process into a cgroup; its sockets stay where they are.
func Enter(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		t.Error(err)
	}
}
