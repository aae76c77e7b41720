package host

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"time"

	"headgate/collective"
	"headgate/collective/sockops"
	"headgate/internal/ask"
)

// Ours.
const (
	// Tick is how often connections are looked at: more often than once a round trip of 20
	// ms, of which the seed's cycle wants every one. Where ours has nothing to control half as
	// often is enough.
	Tick, calmTick = 10 * time.Millisecond, 20 * time.Millisecond
	// slowTick is how often cgroups are looked for, and rates are told.
	slowTick = time.Second
	// lease is how long a cap outlives the last look.
	lease = time.Second
	// liftPatience is for how long the end waits until no connection is capped any more.
	liftPatience = 2 * time.Second
	// showPatience is for how long the end waits for whoever is shown the last state.
	showPatience = 100 * time.Millisecond
)

// Host is the sets of this machine.
type Host struct {
	table *sockops.Table
	sets  []*set // as in the configuration
	by    map[uint32]*set
	dry   bool
	// asks are what others want done between two looks.
	asks ask.Loop
	slow time.Duration // the last slow tick
}

// New watches the policies' connections, until Close. With dry it caps nothing, and only tells
// what it would do.
func New(table *sockops.Table, policies []collective.Policy, dry bool) (*Host, error) {
	h := &Host{table: table, by: map[uint32]*set{}, dry: dry, asks: make(ask.Loop)}
	if err := h.begin(policies); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func (h *Host) begin(policies []collective.Policy) error {
	var numbers []uint32
	for _, p := range policies {
		s, err := newSet(p)
		if err != nil {
			return err
		}
		if other := h.by[s.number]; other != nil {
			return fmt.Errorf("the sets %s and %s cannot be told apart in the kernel: rename one", other.policy.Name, p.Name)
		}
		if _, err := s.find(); err != nil {
			return fmt.Errorf("set %s: %w", p.Name, err)
		}
		h.by[s.number] = s
		h.sets = append(h.sets, s)
		numbers = append(numbers, s.number)
	}
	// What a killed program capped is let go.
	lift(h.table)
	for _, s := range h.sets {
		if err := h.table.Attach(s.watched()); err != nil {
			return fmt.Errorf("set %s: %w", s.policy.Name, err)
		}
	}
	if err := h.table.Detach(numbers...); err != nil {
		return err
	}
	// Sets may be others now, and their cgroups. What was passed stays.
	h.table.Abandon(func(c *sockops.Connection) bool { return c.Asked && h.by[c.Set] != nil })
	for _, s := range h.sets {
		h.join(s)
	}
	return nil
}

// number is what the kernel knows a set by: the same whenever the program runs.
func number(name string) uint32 {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return min(hash.Sum32(), sockops.NoSet-1)
}

func (h *Host) join(s *set) {
	if err := h.table.Join(s.watched()); err != nil {
		slog.Warn("connections that are open already are left alone", "set", s.policy.Name, "error", err)
	}
}

// Run looks and caps until ctx ends, or show fails. Each state goes to show, so often as every
// says: while show takes its time, nobody is kept waiting, and it misses some.
func (h *Host) Run(ctx context.Context, every time.Duration, show func([]State) error) error {
	states, failed := make(chan []State, 1), make(chan error, 1)
	go func() {
		for s := range states {
			if err := show(s); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	err := h.run(ctx, every, states, failed)
	close(states)
	if err != nil {
		return err
	}
	// What is half written is written, if anybody reads.
	select {
	case err := <-failed:
		return err
	case <-time.After(showPatience):
		return nil
	}
}

func (h *Host) run(ctx context.Context, every time.Duration, states chan<- []State, failed <-chan error) error {
	tick := time.NewTimer(Tick)
	defer tick.Stop()
	var shown time.Time // the first at once
	for {
		h.Look()
		if now := time.Now(); now.Sub(shown) >= every && len(states) == 0 {
			shown = now
			states <- h.State()
		}
		tick.Reset(h.pause())
		for looked := false; !looked; {
			select {
			case <-ctx.Done():
				return nil
			case err := <-failed:
				return err
			case do := <-h.asks:
				do()
			case <-tick.C:
				looked = true
			}
		}
	}
}

// pause is the time until the next look.
func (h *Host) pause() time.Duration {
	for _, s := range h.sets {
		if s.busy() {
			return Tick
		}
	}
	return calmTick
}

// Look reads what connections have shown since the last look, and caps them.
func (h *Host) Look() {
	now := sockops.Now()
	h.look()
	for _, s := range h.sets {
		s.obey(h.table, now, h.dry)
	}
	if now-h.slow >= slowTick {
		h.slow = now
		for _, s := range h.sets {
			h.follow(s)
			s.rates(now)
		}
	}
}

// look gives the sets what their connections have shown since the last time.
func (h *Host) look() {
	h.table.Look(func(c *sockops.Connection) {
		// A number that is not ours is of a set that was abandoned.
		if s := h.by[c.Set]; s != nil {
			s.observe(c)
		}
	}, func(number uint32, id collective.ID) {
		if s := h.by[number]; s != nil {
			s.remove(id)
		}
	})
}

// follow has a set follow its cgroup, which goes and comes with a service.
func (h *Host) follow(s *set) {
	before := s.at
	moved, err := s.find()
	if err == nil && moved {
		if err = h.table.Follow(s.number, s.at.path); err != nil {
			s.at = before
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return // gone again: the next time will tell
	}
	if err != nil {
		if err.Error() != s.lost {
			slog.Warn("whether the cgroup is there cannot be told", "set", s.policy.Name, "error", err)
		}
		s.lost = err.Error()
		return
	}
	if s.lost = ""; !moved {
		return
	}
	if s.at.path == "" {
		slog.Warn("the cgroup is gone: its set waits for it", "set", s.policy.Name, "cgroup", before.path)
		return
	}
	slog.Info("the cgroup is there", "set", s.policy.Name, "cgroup", s.at.path)
	h.join(s)
}

// Close lets all connections go, and takes away what was attached.
func (h *Host) Close() error {
	idle, err := letGo(h.table)
	if idle > 0 {
		slog.Info("some connections are idle, and will be let go as they send again", "connections", idle)
	}
	return err
}
