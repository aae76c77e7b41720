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

// peerError handles an error by its origin: the case fails if it is Headgate's, and continues without
// the value if it is a peer's.
func peerError(s *bench.Sheet, err error) error {
	if s.By == bench.Ours {
		return err
	}
	s.Fail(err)
	return nil
}

// alongside calls fn for all names in parallel.
func alongside(names []string, fn func(name string) error) error {
	var all sync.WaitGroup
	errs := make([]error, len(names))
	for i, name := range names {
		all.Go(func() { errs[i] = fn(name) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// countersOf returns the engine's counters of a direction.
func countersOf(s *shaper.State, in bool) *shaper.DirectionState {
	if in {
		return s.In
	}
	return s.Out
}

// inTurn calls fn for Headgate and then for each peer. It runs the peers in parallel where they load
// the machine little, and in a smoke run, which is shorter and less exact.
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

// pairs returns the duration of inPairs for n names with this duration each.
func pairs(n int, each time.Duration) time.Duration { return time.Duration((n+1)/2) * each }

// turns returns the duration of inTurn for n names with this duration each.
func turns(together bool, n int, each time.Duration) time.Duration {
	if together {
		n = min(n, 2)
	}
	return time.Duration(n) * each
}

// overhead is the duration of a trial besides its measurement: creating the network, connecting, and
// removing the network.
const overhead = 500 * time.Millisecond

// errSmoke is the reason why a smoke run of everything lacks a value.
var errSmoke = errors.New("not part of a smoke run: select it by name (--only)")

// leftOut reports whether a run is a smoke run of everything, whose three minutes are for other cases,
// and adds that to the result.
func leftOut(r *bench.Run) bool {
	if !r.Quick || r.Few {
		return false
	}
	r.Sheet(bench.Ours).Fail(errSmoke)
	return true
}

// slow is the batch of cases that use a small part of the machine's capacity.
const slow = "slow"

// inSlow returns the batch of a case that a smoke run measures together with the slow ones.
func inSlow(is bool) func(quick bool) string {
	return func(quick bool) string {
		if quick && is {
			return slow
		}
		return ""
	}
}

// slowLast orders cases so that those which a smoke run measures together with the slow ones are
// neighbours of the next cases.
func slowLast(cases []bench.Case) []bench.Case {
	slices.SortStableFunc(cases, func(a, b bench.Case) int {
		return cmp.Compare(last(a.Alongside(true) == slow), last(b.Alongside(true) == slow))
	})
	return cases
}

// last is the sort key of cases.
func last(is bool) int {
	if is {
		return 1
	}
	return 0
}
