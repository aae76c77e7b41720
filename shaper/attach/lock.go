package attach

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/shaper"
)

// lockPath is the file lock that serialises changes by all processes of the machine.
const lockPath = "/run/headgate/lock"

// Locked calls do while no other process changes a device. The kernel releases the lock when a
// process dies.
func Locked(do func() error) error {
	if err := os.MkdirAll(filepath.Dir(lockPath), 0o755); err != nil {
		return permission(err)
	}
	f, err := os.OpenFile(lockPath, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return permission(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("cannot lock %s: %w", lockPath, err)
	}
	return do()
}

// permission wraps a permission error of the kernel in shaper.ErrPermission.
func permission(err error) error {
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%w: %v", shaper.ErrPermission, err)
	}
	return err
}
