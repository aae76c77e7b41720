package host

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/internal/ask"
)

// Intervals and timeouts, chosen by Headgate.
const (
	// Tick is the interval of looks at the connections: more often than once per round
	// trip of 20 ms, each of which the seed's cycle needs. Headgate's cycle needs half as
	// many looks without control.
	Tick, calmTick = 10 * time.Millisecond, 20 * time.Millisecond
	// minTick is the shortest interval, for a set with the seed's cycle and shorter round trips than Tick.
	minTick = time.Millisecond
	// slowTick is the interval of looking up cgroups and of computing rates.
	slowTick = time.Second
	// lease is how long a cap remains after the last look.
	lease = time.Second
	// releaseTimeout bounds the wait at the end until no connection is capped.
	releaseTimeout = 2 * time.Second
	// showTimeout bounds the wait at the end until the last state is shown.
	showTimeout = 100 * time.Millisecond
)

// Host is the connection sets of this machine.
type Host struct {
	table *sockops.Table
	sets  []*set // in the order of the configuration
	by    map[uint32]*set
	dry   bool
	// requests are calls to make between two looks.
	requests ask.Loop
	slow     time.Duration // time of the last slow tick
	began    time.Duration
	keeper   keeper
	// bottlenecks are those that sets have in common.
	bottlenecks bottlenecks
	// congestions is what the report is made of.
	congestions congestionLog
}

// New attaches to the connections of the policies, until Close. With dry it sets no caps,
// and only reports what they would be.
func New(table *sockops.Table, policies []collective.Policy, dry bool) (*Host, error) {
	h := &Host{table: table, by: map[uint32]*set{}, dry: dry, requests: make(ask.Loop), began: sockops.Now(), bottlenecks: bottlenecks{}, keeper: keeper{file: keptFile(table.Name())}, congestions: congestionLog{file: congestionsFile(table.Name())}}
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
		s.bottlenecks = h.bottlenecks
		if other := h.by[s.number]; other != nil {
			return fmt.Errorf("names of the sets %s and %s collide in the kernel: rename one of them", other.policy.Name, p.Name)
		}
		if _, err := s.find(); err != nil {
			return fmt.Errorf("set %s: %w", p.Name, err)
		}
		h.by[s.number] = s
		h.sets = append(h.sets, s)
		numbers = append(numbers, s.number)
	}
	h.restore()
	if err := h.congestions.trim(time.Now()); err != nil {
		slog.Warn("cannot remove old congestions", "file", h.congestions.file, "error", err)
	}
	// Release the connections that a killed process capped.
	releaseCaps(h.table)
	for _, s := range h.sets {
		if err := h.table.Attach(s.sockopsSet()); err != nil {
			return fmt.Errorf("set %s: %w", s.policy.Name, err)
		}
	}
	if err := h.table.Detach(numbers...); err != nil {
		return err
	}
	// The sets and their cgroups may have changed. Connections that joined explicitly
	// remain.
	h.table.RemoveConnections(func(c *sockops.Connection) bool { return c.Joined && h.by[c.Set] != nil })
	for _, s := range h.sets {
		h.join(s)
	}
	return nil
}

// number returns the kernel's number of a set, which is the same in every run.
func number(name string) uint32 {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return min(hash.Sum32(), sockops.NoSet-1)
}

func (h *Host) join(s *set) {
	if err := h.table.Join(s.sockopsSet()); err != nil {
		slog.Warn("cannot add open connections to the set", "set", s.policy.Name, "error", err)
	}
}

// Run looks at the connections and sets caps until ctx ends, or until show fails. It
// calls show with the states at the interval every. A slow show does not delay the looks,
// and misses states.
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
	// Let show finish, if its output is read.
	select {
	case err := <-failed:
		return err
	case <-time.After(showTimeout):
		return nil
	}
}

func (h *Host) run(ctx context.Context, every time.Duration, states chan<- []State, failed <-chan error) error {
	tick := time.NewTimer(Tick)
	defer tick.Stop()
	var shown time.Time // zero, so the first state is shown at once
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
			case do := <-h.requests:
				do()
			case <-tick.C:
				looked = true
			}
		}
	}
}

// pause returns the time until the next look.
func (h *Host) pause() time.Duration {
	pause := calmTick
	for _, s := range h.sets {
		pause = min(pause, s.pause())
	}
	return pause
}

// Look processes what the connections have shown since the last look, and sets their
// caps.
func (h *Host) Look() {
	now := sockops.Now()
	h.look()
	for _, s := range h.sets {
		s.applyCaps(h.table, now, h.dry)
	}
	if over := h.over(); len(over) > 0 {
		go h.congestions.add(over) // a slow disk must not delay a look
	}
	if took := now - h.slow; took >= slowTick {
		h.slow = now
		for _, s := range h.sets {
			h.followCgroup(s)
			s.rates(now)
			for _, p := range s.parts {
				p.wait(min(took, 2*slowTick))
			}
			s.regroup()
			s.learn(now, min(took, 2*slowTick), now-h.began > restoreFor)
		}
		if now-h.keeper.at >= keepEvery {
			h.keeper.at = now
			h.keeper.start(h.kept())
		}
	}
}

// over returns the congestions that have ended since the last call.
func (h *Host) over() (all []Congestion) {
	for _, s := range h.sets {
		all = append(all, s.over...)
		s.over = nil
	}
	for i := range all {
		all[i].DryRun = h.dry
	}
	return all
}

// look passes what the connections have shown since the last look to the sets.
func (h *Host) look() {
	h.table.Look(func(c *sockops.Connection) {
		// An unknown number is that of a removed set.
		if s := h.by[c.Set]; s != nil {
			s.observe(c)
		}
	}, func(e sockops.Ended) {
		if s := h.by[e.Set]; s != nil {
			s.end(e)
		}
	})
}

// followCgroup updates the cgroup of a set, which a service may remove and create.
func (h *Host) followCgroup(s *set) {
	before := s.cgroup
	moved, err := s.find()
	if err == nil && moved {
		if err = h.table.Follow(s.number, s.cgroup.path); err != nil {
			s.cgroup = before
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return // removed again: retry at the next slow tick
	}
	if err != nil {
		if err.Error() != s.lastError {
			slog.Warn("cannot look up cgroup", "set", s.policy.Name, "error", err)
		}
		s.lastError = err.Error()
		return
	}
	if s.lastError = ""; !moved {
		return
	}
	if s.cgroup.path == "" {
		slog.Warn("cgroup was removed, set waits for it", "set", s.policy.Name, "cgroup", before.path)
		return
	}
	slog.Info("cgroup found", "set", s.policy.Name, "cgroup", s.cgroup.path)
	h.join(s)
}

// endCongestions keeps the congestions that there are.
func (h *Host) endCongestions() {
	now := sockops.Now()
	for _, s := range h.sets {
		for _, p := range s.parts {
			if p.phase.controlling {
				s.endCongestion(p, now)
			}
		}
	}
	h.congestions.add(h.over())
}

// Close releases all connections, and removes what was attached.
func (h *Host) Close() error {
	if h.keeper.ready { // else what an earlier process has kept stays
		h.keeper.write(h.kept())
		h.endCongestions()
	}
	idle, err := release(h.table)
	if idle > 0 {
		slog.Info("idle connections will be released when they send again", "connections", idle)
	}
	return err
}
