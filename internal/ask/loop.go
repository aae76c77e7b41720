package ask

import (
	"errors"
	"time"
)

// Loop is where a daemon's loop hears what others want done between two of its rounds.
type Loop chan func()

// Do has something done, and waits until it is.
func (l Loop) Do(do func()) error {
	done := make(chan struct{})
	select {
	case l <- func() { defer close(done); do() }:
		<-done
		return nil
	case <-time.After(Patience):
		return errors.New("the program is busy, or ends: try again")
	}
}
