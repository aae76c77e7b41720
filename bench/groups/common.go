package groups

import (
	"errors"
	"sync"
	"time"

	"headgate/bench"
	"headgate/shaper"
)

// peerError decides what an error means: the case fails if it is ours, and goes
// on without the figure if it is a peer's.
func peerError(s *bench.Sheet, err error) error {
	if s.By == bench.Ours {
		return err
	}
	s.Fail(err)
	return nil
}

// alongside calls fn for all names at the same time.
func alongside(names []string, fn func(name string) error) error {
	var all sync.WaitGroup
	errs := make([]error, len(names))
	for i, name := range names {
		all.Go(func() { errs[i] = fn(name) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// countersOf is what the engine counted in a direction.
func countersOf(s *shaper.State, in bool) *shaper.DirectionState {
	if in {
		return s.In
	}
	return s.Out
}

// inTurn calls fn for ours and then for each peer, or for the peers together:
// where they load the machine little, and in a smoke run, which disturbs them and
// is shorter.
func inTurn(names []string, together bool, fn func(name string) error) error {
	for i, name := range names {
		if together && i > 0 {
			return alongside(names[i:], fn)
		}
		if err := fn(name); err != nil {
			return err
		}
	}
	return nil
}

// turns is how long inTurn takes for n, one of which takes each.
func turns(together bool, n int, each time.Duration) time.Duration {
	if together {
		n = min(n, 2)
	}
	return time.Duration(n) * each
}

// overhead is what a trial takes besides its length: to make the network, to
// connect, and to take the network down.
const overhead = 500 * time.Millisecond
