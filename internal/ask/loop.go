package ask

import (
	"errors"
	"time"
)

// Loop passes functions to a daemon's main loop, which runs them between its iterations.
type Loop chan func()

// Do runs a function in the loop and waits until it returns.
func (l Loop) Do(do func()) error {
	done := make(chan struct{})
	select {
	case l <- func() { defer close(done); do() }:
		<-done
		return nil
	case <-time.After(Timeout):
		return errors.New("the program is busy or stopping: retry later")
	}
}
