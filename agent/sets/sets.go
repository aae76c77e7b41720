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

	"headgate/collective"
	"headgate/collective/host"
	"headgate/collective/sockops"
)

// Instance is the name under which the controllers' sets run, for "headgate collective show".
const Instance = "service"

// Ours.
const (
	// most is how many connections there is room for, of 256 bytes each.
	most = 16384
	// lookEvery is how often the programs of this host are asked for their sets, retryEvery how
	// often what the kernel refused is tried again, and what idle connections keep is cleared.
	lookEvery, retryEvery = 5 * time.Second, time.Minute
)

// Sets are the controllers'.
type Sets struct {
	// Told is called with what cannot be done, by set, when that has changed.
	Told func(troubles map[string]string)

	kick chan struct{}
	told map[string]string

	mu      sync.Mutex
	want    []collective.Policy
	wrong   map[string]error
	running *running
}

// New are none.
func New() *Sets { return &Sets{kick: make(chan struct{}, 1)} }

// Want says which sets there shall be, and what cannot even be read, by set; it does not wait.
func (s *Sets) Want(policies []collective.Policy, wrong map[string]error) {
	s.mu.Lock()
	s.want, s.wrong = policies, wrong
	s.mu.Unlock()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// States is what the sets are doing; none if none runs.
func (s *Sets) States() ([]host.State, error) {
	s.mu.Lock()
	r := s.running
	s.mu.Unlock()
	if r == nil {
		return nil, nil
	}
	return r.server.States()
}

// Run has the sets be as they are wanted until ctx ends. Then it lets all connections go, and
// leaves what is attached to the next agent.
func (s *Sets) Run(ctx context.Context) {
	// Before anything is wanted there is nothing to do: what a killed agent left is not cleared
	// only to be made again.
	again := time.NewTimer(0)
	again.Stop()
	for {
		select {
		case <-ctx.Done():
			if s.running != nil {
				s.running.leave()
			}
			return
		case <-s.kick:
		case <-again.C:
		}
		troubles, next := s.step()
		again.Stop()
		if next > 0 {
			again.Reset(next)
		}
		if !maps.Equal(troubles, s.told) || s.told == nil {
			s.told = troubles
			for name, trouble := range troubles {
				slog.Warn("a set of connections that the controllers want is not as it should be", "set", name, "error", trouble)
			}
			s.Told(troubles)
		}
	}
}

// step does what is to be done, and says when to do it again unless something happens; 0 is never.
func (s *Sets) step() (troubles map[string]string, again time.Duration) {
	s.mu.Lock()
	want, wrong := s.want, s.wrong
	s.mu.Unlock()
	troubles = map[string]string{}
	for name, err := range wrong {
		troubles[name] = err.Error()
	}
	if len(want) == 0 {
		return troubles, s.end()
	}
	local := ask()
	want = slices.DeleteFunc(slices.Clone(want), func(p collective.Policy) bool {
		by, taken := local.sets[p.Name]
		if taken {
			troubles[p.Name] = fmt.Sprintf("the program %s of this host runs a set of that name (headgate collective run), and it stays with that: end the program, or rename one of them", by)
		}
		return taken
	})
	switch {
	case len(want) == 0:
		return troubles, cmp.Or(s.end(), lookEvery)
	case s.running == nil:
		if err := s.start(want, troubles); err != nil {
			for _, p := range want {
				troubles[p.Name] = cmp.Or(troubles[p.Name], err.Error())
			}
			return troubles, retryEvery
		}
	default:
		failed, err := s.running.host.Change(want)
		for _, p := range want {
			if err := cmp.Or(failed[p.Name], err); err != nil {
				troubles[p.Name] = err.Error()
			}
		}
	}
	for name, trouble := range s.running.trouble(local) {
		troubles[name] = cmp.Or(troubles[name], trouble)
	}
	return troubles, lookEvery
}

// start begins with what can be.
func (s *Sets) start(want []collective.Policy, troubles map[string]string) error {
	var can []collective.Policy
	for _, p := range want {
		if err := host.Check(p); err != nil {
			troubles[p.Name] = err.Error()
			continue
		}
		can = append(can, p)
	}
	if len(can) == 0 {
		return errors.New("there is nothing to run") // each has its own trouble
	}
	r, err := begin(can)
	if err == nil {
		s.mu.Lock()
		s.running = r
		s.mu.Unlock()
	}
	return err
}

// end takes away all that is attached, and says when to try that again if idle connections keep it.
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
	case errors.Is(err, sockops.ErrTaken):
		return 0 // it is another agent's
	case err != nil:
		slog.Warn("what was attached for sets of connections cannot be taken away", "error", err)
		return retryEvery
	case found && idle > 0:
		return retryEvery
	}
	return 0
}
