package groups

import (
	"errors"
	"sync"

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

// inTurn calls fn for ours and then for each peer. In a smoke run the peers come
// together after ours: their figures are disturbed, and the run is shorter.
func inTurn(r *bench.Run, names []string, fn func(name string) error) error {
	for i, name := range names {
		if r.Quick && i > 0 {
			return alongside(names[i:], fn)
		}
		if err := fn(name); err != nil {
			return err
		}
	}
	return nil
}
