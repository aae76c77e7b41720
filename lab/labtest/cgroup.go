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

// Cgroup moves this process, its future sockets and the programs that it starts into a new cgroup v2
// until the test ends, and returns its path. It is for tests that do not run in parallel: programs
// that other tests start meanwhile would be in the cgroup as well.
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

// Enter moves this process into a cgroup; existing sockets stay in theirs.
func Enter(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		t.Error(err)
	}
}
