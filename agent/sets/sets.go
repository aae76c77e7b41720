package sets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/collective/sockops"
)

// Instance is the name under which the controllers' sets run; "headgate collective show" uses it.
const Instance = "service"

// Limits of the sets.
const (
	// tableSize is the size of the table of connections, 256 bytes each.
	tableSize = 16384
	// queryInterval is the interval at which programs of this host are queried for their sets.
	// retryInterval is the interval at which failed kernel operations, and the detachment from idle
	// connections, are retried.
	queryInterval, retryInterval = 5 * time.Second, time.Minute
)

// Sets runs the connection sets of the controllers.
type Sets struct {
	// Report is called with the problems, by set, when they change.
	Report func(errs map[string]string)

	kick     chan struct{}
	reported map[string]string

	mu          sync.Mutex
	want        []collective.Policy
	parseErrors map[string]error
	running     *running
}

// New returns a Sets without connection sets.
func New() *Sets { return &Sets{kick: make(chan struct{}, 1)} }

// SetDesired sets the desired connection sets, and the errors of those that cannot be parsed, by set. It
// does not block.
func (s *Sets) SetDesired(policies []collective.Policy, wrong map[string]error) {
	s.mu.Lock()
	s.want, s.parseErrors = policies, wrong
	s.mu.Unlock()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// States returns the states of the running sets, nil if none runs.
func (s *Sets) States() ([]host.State, error) {
	s.mu.Lock()
	r := s.running
	s.mu.Unlock()
	if r == nil {
		return nil, nil
	}
	return r.server.States()
}

// Run keeps the desired sets running until ctx ends. Then it releases all connections and keeps the
// programs attached for the next agent.
func (s *Sets) Run(ctx context.Context) {
	// Run does nothing before the first call of SetDesired: what a killed agent left attached is
	// not detached only to be attached again.
	again := time.NewTimer(0)
	again.Stop()
	for {
		select {
		case <-ctx.Done():
			if s.running != nil {
				s.running.releaseKeepAttached()
			}
			return
		case <-s.kick:
		case <-again.C:
		}
		errs, next := s.step()
		again.Stop()
		if next > 0 {
			again.Reset(next)
		}
		if !maps.Equal(errs, s.reported) || s.reported == nil {
			s.reported = errs
			for name, problem := range errs {
				slog.Warn("connection set does not run as configured", "set", name, "error", problem)
			}
			s.Report(errs)
		}
	}
}

// step brings the running sets to the desired state. It returns the time until the next step if
// nothing changes; 0 means that no step is necessary.
func (s *Sets) step() (errs map[string]string, again time.Duration) {
	s.mu.Lock()
	want, wrong := s.want, s.parseErrors
	s.mu.Unlock()
	errs = map[string]string{}
	for name, err := range wrong {
		errs[name] = err.Error()
	}
	if len(want) == 0 {
		return errs, s.end()
	}
	local := queryLocal()
	want = slices.DeleteFunc(slices.Clone(want), func(p collective.Policy) bool {
		by, taken := local.sets[p.Name]
		if taken {
			errs[p.Name] = fmt.Sprintf("program %s on this host already runs a set of this name (headgate collective run): stop the program, or rename one of the sets", by)
		}
		return taken
	})
	switch {
	case len(want) == 0:
		return errs, cmp.Or(s.end(), queryInterval)
	case s.running == nil:
		if err := s.start(want, errs); err != nil {
			for _, p := range want {
				errs[p.Name] = cmp.Or(errs[p.Name], err.Error())
			}
			return errs, retryInterval
		}
	default:
		failed, err := s.running.host.Change(want)
		for _, p := range want {
			if err := cmp.Or(failed[p.Name], err); err != nil {
				errs[p.Name] = err.Error()
			}
		}
	}
	for name, problem := range s.running.problems(local) {
		errs[name] = cmp.Or(errs[name], problem)
	}
	return errs, queryInterval
}

// start starts the sets that this host supports.
func (s *Sets) start(want []collective.Policy, errs map[string]string) error {
	var can []collective.Policy
	for _, p := range want {
		if err := host.Check(p); err != nil {
			errs[p.Name] = err.Error()
			continue
		}
		can = append(can, p)
	}
	if len(can) == 0 {
		return errors.New("no set to run") // each set has its own error
	}
	r, err := startSets(can)
	if err == nil {
		s.mu.Lock()
		s.running = r
		s.mu.Unlock()
	}
	return err
}

// end detaches everything. It returns the time until a retry if idle connections prevent that.
func (s *Sets) end() (again time.Duration) {
	s.mu.Lock()
	r := s.running
	s.running = nil
	s.mu.Unlock()
	if r != nil {
		r.end()
	}
	found, idle, err := host.Clear(Instance)
	switch {
	case errors.Is(err, sockops.ErrInUse):
		return 0 // another agent is running
	case err != nil:
		slog.Warn("cannot detach the programs of connection sets, retrying", "error", err)
		return retryInterval
	case found && idle > 0:
		return retryInterval
	}
	return 0
}
