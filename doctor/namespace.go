package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/bpfobj"
	"headgate.dev/headgate/internal/thread"
)

// runDir is the directory of the lock files of Headgate's processes.
const runDir = "/run/headgate"

// inNamespace runs fn on a thread with a network and a mount namespace of its own. The
// thread ends with fn, and the kernel then removes what fn created there, also if the
// process is killed.
func inNamespace(fn func() error) error {
	return thread.RunOnce(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		if err := isolateMounts(); err != nil {
			return err
		}
		return removeEmptyDir(fn)
	})
}

// isolateMounts isolates the files that the engine writes from the machine: mounts of this namespace
// do not propagate, and if no headgate has run since boot, /run is an empty tmpfs. If one
// has run, the trial uses its lock, because all processes share the hook that measures
// queues.
func isolateMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot keep mounts private: %w", err)
	}
	if _, err := os.Stat(runDir); errors.Is(err, os.ErrNotExist) {
		if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("cannot mount a temporary file system on /run: %w", err)
		}
	}
	return nil
}

// removeEmptyDir runs fn, and removes the empty directory that fn leaves in the bpf file system.
func removeEmptyDir(fn func() error) error {
	if root, ok := bpfobj.FS(); ok {
		dir := filepath.Join(root, "headgate")
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			defer func() { _ = os.Remove(dir) }() // fails, as intended, if the directory is in use by then
		}
	}
	return fn()
}
