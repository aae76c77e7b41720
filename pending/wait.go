package pending

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// confirmInterval is the interval at which Wait checks for a confirmation. It need not be short,
// because nothing waits for Wait to return.
const confirmInterval = 200 * time.Millisecond

// attempts and pause are the retries of a rollback, which may fail because a device is
// reappearing or the kernel holds a lock. After them the user has to finish the rollback.
const (
	rollbackAttempts = 3
	retryInterval    = time.Second
)

// Wait rolls the change back at its deadline, or at once when ctx ends: a process that is
// stopped while it waits (at the end of the session, or at shutdown) has no confirmation.
// It returns without a rollback if the change is confirmed. It calls ready when it has
// started to wait; the change must not be applied before.
func (s *Store) Wait(ctx context.Context, id string, ready func(), undo func(Snapshot) error) error {
	release, err := s.markWaiter()
	if err != nil {
		return fmt.Errorf("another process is waiting for a confirmation: %w", err)
	}
	defer release()
	c, err := read[Change](s.waitingFile())
	if err != nil {
		return err
	}
	// Use the monotonic clock, because setting the time must not change the deadline.
	deadline := time.NewTimer(time.Until(c.Deadline()))
	defer deadline.Stop()
	tick := time.NewTicker(confirmInterval)
	defer tick.Stop()
	ready()
	for waiting := true; waiting; {
		select {
		case <-deadline.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		case <-tick.C:
			if now, err := read[Change](s.waitingFile()); err != nil || now.ID != id {
				return nil
			}
		}
	}
	return s.undoWithRetries(c, undo)
}

func (s *Store) undoWithRetries(c Change, undo func(Snapshot) error) (err error) {
	unlock, err := s.Lock() // before the claim, because the holder may be dropping devices
	if err != nil {
		return err
	}
	defer unlock()
	if c, err = read[Change](s.waitingFile()); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	claimed, err := s.claim(c.ID)
	if err != nil || !claimed {
		return err
	}
	for i := range rollbackAttempts {
		if i > 0 {
			time.Sleep(retryInterval)
		}
		if err = s.RollBack(c, undo); err == nil {
			return nil
		}
	}
	return err
}
