package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/cgroup2"
)

// watcher reports when directories are created in, or removed from, the parent directories of the
// watched cgroups.
type watcher struct {
	fd   int
	file *os.File
	dirs map[string]int // inotify watch descriptors by directory
}

func newWatcher() (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("cannot watch cgroups: %w", err)
	}
	return &watcher{fd: fd, file: os.NewFile(uintptr(fd), "inotify"), dirs: map[string]int{}}, nil
}

func (w *watcher) close() error { return w.file.Close() }

// watch replaces the watched set: the parent directory of each cgroup, or the part of its path that
// exists.
func (w *watcher) watch(cgroups []string) error {
	if len(cgroups) == 0 && len(w.dirs) == 0 {
		return nil
	}
	root, err := cgroup2.Mount()
	if err != nil {
		return err
	}
	wanted := map[string]int{}
	var failed []error
	for _, c := range cgroups {
		// Watches are added from the root downwards, so that a directory that is created meanwhile
		// is either found here or reported by the watch on its parent.
		for _, dir := range ancestors(c) {
			dir = filepath.Join(root, dir)
			wd, err := unix.InotifyAddWatch(w.fd, dir, unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVE|unix.IN_ONLYDIR)
			if errors.Is(err, unix.ENOENT) {
				break
			}
			if err != nil {
				failed = append(failed, &os.PathError{Op: "watch", Path: dir, Err: err})
				break
			}
			wanted[dir] = wd
		}
	}
	for dir, wd := range w.dirs {
		if now, ok := wanted[dir]; !ok || now != wd {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd)) // fails if the directory was removed
		}
	}
	w.dirs = wanted
	return errors.Join(failed...)
}

// ancestors returns /, /a and /a/b for /a/b/c.
func ancestors(path string) (out []string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		out = append([]string{dir}, out...)
		if dir == "/" || dir == "." {
			return out
		}
	}
}

// receive calls tell after each read of inotify events; their content is not used.
func (w *watcher) receive(tell func()) {
	buf := make([]byte, 64<<10)
	for {
		if _, err := w.file.Read(buf); err != nil {
			return
		}
		tell()
	}
}
