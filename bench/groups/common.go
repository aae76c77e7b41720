package groups

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/shaper"
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

// inPairs calls fn for two names at a time.
func inPairs(names []string, fn func(name string) error) error {
	for pair := range slices.Chunk(names, 2) {
		if err := alongside(pair, fn); err != nil {
			return err
		}
	}
	return nil
}

// pairs is how long inPairs takes for n, one of which takes each.
func pairs(n int, each time.Duration) time.Duration { return time.Duration((n+1)/2) * each }

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

// errSmoke is why a smoke run of everything lacks a figure.
var errSmoke = errors.New("a smoke run has it only if it is asked for by name (--only)")

// leftOut tells whether a run is a smoke run of everything, whose three minutes are for
// other cases, and says so in the result.
func leftOut(r *bench.Run) bool {
	if !r.Quick || r.Few {
		return false
	}
	r.Sheet(bench.Ours).Fail(errSmoke)
	return true
}

// slow is the batch of cases that load the machine with a small part of what it carries.
const slow = "slow"

// inSlow is the batch of a case that a smoke run has together with the slow ones.
func inSlow(is bool) func(quick bool) string {
	return func(quick bool) string {
		if quick && is {
			return slow
		}
		return ""
	}
}

// slowLast orders cases so that those which a smoke run has together with the slow ones are
// neighbours of what follows.
func slowLast(cases []bench.Case) []bench.Case {
	slices.SortStableFunc(cases, func(a, b bench.Case) int {
		return cmp.Compare(last(a.Alongside(true) == slow), last(b.Alongside(true) == slow))
	})
	return cases
}

// last is for the order of cases.
func last(is bool) int {
	if is {
		return 1
	}
	return 0
}
