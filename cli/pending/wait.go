package pending

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// poll is how soon a confirmation is noticed; nobody waits for that, so it need
// not be sooner.
const poll = 200 * time.Millisecond

// attempts and pause: a device that is just coming back, or a lock of the
// kernel, deserves a second try; after that a person is needed.
const (
	attempts = 3
	pause    = time.Second
)

// Wait undoes the change when its time is up, or at once when ctx ends: who is
// told to stop while waiting (the session is torn down, the machine shuts down)
// has not been confirmed. It returns without doing anything if the change is
// confirmed. ready is called when Wait is at its post, before which the change
// must not be made.
func (s *Store) Wait(ctx context.Context, id string, ready func(), undo func(Snapshot) error) error {
	release, err := s.hold()
	if err != nil {
		return fmt.Errorf("another process waits for a confirmation already: %w", err)
	}
	defer release()
	c, err := read(s.waiting())
	if err != nil {
		return err
	}
	// By the monotonic clock: setting the time must not shorten or stretch it.
	deadline := time.NewTimer(time.Until(c.Deadline()))
	defer deadline.Stop()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	ready()
	for waiting := true; waiting; {
		select {
		case <-deadline.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		case <-tick.C:
			if now, err := read(s.waiting()); err != nil || now.ID != id {
				return nil
			}
		}
	}
	return s.undoWithRetries(c, undo)
}

func (s *Store) undoWithRetries(c Change, undo func(Snapshot) error) (err error) {
	unlock, err := s.Lock() // before the claim: who holds it may be taking devices out
	if err != nil {
		return err
	}
	defer unlock()
	if c, err = read(s.waiting()); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	claimed, err := s.claim(c.ID)
	if err != nil || !claimed {
		return err
	}
	for i := range attempts {
		if i > 0 {
			time.Sleep(pause)
		}
		if err = s.RollBack(c, undo); err == nil {
			return nil
		}
	}
	return err
}
