package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"headgate/internal/bpfobj"
	"headgate/internal/thread"
)

// runDir is where Headgate's processes lock each other out.
const runDir = "/run/headgate"

// inNamespace runs fn on a thread with a network and a mount namespace of its
// own. The thread ends with fn, and what was made there with the thread, also if
// the process is killed.
func inNamespace(fn func() error) error {
	return thread.Throwaway(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		if err := hide(); err != nil {
			return err
		}
		return withoutTraces(fn)
	})
}

// hide keeps what the engine writes outside the kernel from the machine: mounts
// of ours are not passed on, and if no headgate has run since boot, /run is a
// copy of nothing. If one has, its lock is used, because the hook that measures
// queues is shared by all.
func hide() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot keep mounts private: %w", err)
	}
	if _, err := os.Stat(runDir); errors.Is(err, os.ErrNotExist) {
		if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("cannot mount a file system of our own: %w", err)
		}
	}
	return nil
}

// withoutTraces removes the folder that fn leaves empty in the bpf file system.
func withoutTraces(fn func() error) error {
	if root, ok := bpfobj.FS(); ok {
		dir := filepath.Join(root, "headgate")
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			defer func() { _ = os.Remove(dir) }() // fails if it is in use by now, as it should
		}
	}
	return fn()
}
