package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// netnsDir is where iproute2 looks for named namespaces (ip-netns(8)).
const netnsDir = "/run/netns"

// home is the namespace of this process.
var home = sync.OnceValues(netns.Get)

// within is the namespace of each thread that is not in home, by the thread's id.
var within = struct {
	sync.Mutex
	at map[int]int
}{at: map[int]int{}}

// move changes the namespace of this thread, and returns the former one. Reading that from the kernel,
// by an open below /proc, took seconds on a machine full of real-time threads.
func move(to int) (from int, err error) {
	at, err := home()
	if err != nil {
		return 0, fmt.Errorf("cannot open this process's network namespace: %w", err)
	}
	within.Lock()
	defer within.Unlock()
	thread := unix.Gettid()
	from, away := within.at[thread]
	if !away {
		from = int(at)
	}
	if err := unix.Setns(to, unix.CLONE_NEWNET); err != nil {
		return from, err
	}
	if within.at[thread] = to; to == int(at) {
		delete(within.at, thread)
	}
	return from, nil
}

// inNamespace runs fn on this goroutine with its thread locked and moved into the namespace ns. If the
// thread cannot be moved back it stays locked, and ends with the goroutine.
func inNamespace(ns int, fn func() error) error {
	runtime.LockOSThread()
	from, err := move(ns)
	if err != nil {
		runtime.UnlockOSThread()
		return permitted(fmt.Errorf("cannot enter a network namespace: %w", err))
	}
	defer func() {
		if _, err := move(from); err == nil {
			runtime.UnlockOSThread()
		}
	}()
	return fn()
}

// newNamespace creates a namespace, names it by a bind mount as ip-netns does, and returns an open
// file of it. The thread's own namespace is unchanged.
func newNamespace(name string) (*os.File, error) {
	if err := shareNames(); err != nil {
		return nil, permitted(err)
	}
	path := filepath.Join(netnsDir, name)
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return nil, permitted(fmt.Errorf("cannot name a network namespace: %w", err))
	}
	f.Close()
	if err := bindNew(path); err != nil {
		os.Remove(path)
		return nil, permitted(err)
	}
	return os.Open(path)
}

// shareNames makes the directory of names a shared mount, as ip-netns(8) does before it creates its
// first name. If ip-netns did so later, its mount would hide the existing names, and they could not be
// removed.
func shareNames() error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return err
	}
	dir, err := os.Open(netnsDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil { // ip-netns takes this lock as well
		return &os.PathError{Op: "lock", Path: netnsDir, Err: err}
	}
	share := func() error { return unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "") }
	err = share()
	if errors.Is(err, unix.EINVAL) { // it is not yet a mount
		if err = unix.Mount(netnsDir, netnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = share()
		}
	}
	if err != nil {
		return fmt.Errorf("share %s: %w", netnsDir, err)
	}
	return nil
}

func bindNew(path string) error {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("cannot create a network namespace: %w", err)
	}
	defer func() {
		if err := unix.Setns(int(home), unix.CLONE_NEWNET); err == nil {
			runtime.UnlockOSThread()
		}
	}()
	self := fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
	if err := unix.Mount(self, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("cannot bind a network namespace to %s: %w", path, err)
	}
	return nil
}

// dropName removes the name of a namespace; the kernel removes the namespace when nothing uses it. A
// missing name is not an error.
func dropName(name string) error {
	path := filepath.Join(netnsDir, name)
	// EINVAL: the file exists, but nothing is mounted on it.
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return permitted(fmt.Errorf("unmount %s: %w", path, err))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return permitted(err)
	}
	return nil
}

func sysctlPath(key string) string { return "/proc/sys/" + strings.ReplaceAll(key, ".", "/") }

// writeSysctl sets key ("net.ipv4.tcp_ecn") in the calling thread's namespace.
func writeSysctl(key, value string) error {
	if err := os.WriteFile(sysctlPath(key), []byte(value), 0o644); err != nil {
		return fmt.Errorf("cannot set %s to %q: %w", key, value, err)
	}
	return nil
}
