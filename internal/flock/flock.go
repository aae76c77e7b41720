// Package flock has locks on files (flock(2)) that say that a process is there: they end with it,
// and others ask whether one is held.
package flock

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Hold takes the lock until the file is closed. It fails with EWOULDBLOCK if another process holds
// it. Who asks in Held has it for a moment, or for some more where the processors are busy: it is
// tried for a second.
func Hold(f *os.File) error {
	for tries := 100; ; tries-- {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if tries == 0 || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Held tells whether a process holds the lock. The file is to be closed then, which gives up what
// asking takes: a shared lock, so that two who ask do not see each other.
func Held(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}
