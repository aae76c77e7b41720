// Package flock implements file locks (flock(2)) that show that a process is running. A lock ends
// with its process, and other processes can test it.
package flock

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lock locks the file until it is closed. It fails with EWOULDBLOCK if another process holds the
// lock. Held takes the lock for a moment, or longer on a busy machine, so Hold retries for one
// second.
func Lock(f *os.File) error {
	for tries := 100; ; tries-- {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if tries == 0 || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// IsLocked reports whether a process holds the lock. The caller must close the file after that, which
// releases the shared lock that the test takes; the lock is shared so that concurrent tests do not
// detect each other.
func IsLocked(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}
