package sockops

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/thread"
)

// forEachNamespace calls fn in each network namespace that a process is in or that has a
// name (ip-netns(8)). A namespace that disappears meanwhile is not an error.
func forEachNamespace(fn func() error) error {
	var paths []string
	for _, pattern := range []string{"/proc/[0-9]*/ns/net", "/run/netns/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		paths = append(paths, found...)
	}
	been := map[uint64]bool{}
	return thread.RunOnce(func() (failed error) {
		for _, p := range paths {
			failed = errors.Join(failed, visit(p, been, fn))
		}
		return failed
	})
}

func visit(path string, been map[uint64]bool, fn func() error) error {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil || been[s.Ino] {
		return err
	}
	been[s.Ino] = true
	// EINVAL: the file in that directory is no longer a namespace.
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); errors.Is(err, unix.EINVAL) {
		return nil
	} else if err != nil {
		return fmt.Errorf("cannot enter the network namespace %s: %w", path, err)
	}
	return fn()
}
