package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"headgate/collective"
	"headgate/collective/sockops"
	"headgate/unit"
)

// Ours.
const (
	// Tick is how often connections are looked at: more often than once a round trip of 20
	// ms, of which the seed's cycle wants every one. Where ours has nothing to control half as
	// often is enough.
	Tick, calmTick = 10 * time.Millisecond, 20 * time.Millisecond
	// lease is how long a cap outlives the last look.
	lease = time.Second
	// leastWindow, in packets: with one a lost packet waits for the timer.
	leastWindow = 2
	// mostWindow is no bound any more: 16 GB in flight.
	mostWindow = 1<<24 - 1
	// liftPatience is for how long the end waits until no connection is capped any more.
	liftPatience = 2 * time.Second
)

// Host is the sets of this machine.
type Host struct {
	table *sockops.Table
	sets  []*set // by number
	dry   bool
}

// set is one policy at work.
type set struct {
	policy  collective.Policy
	control control
	members map[collective.ID]*member
	capped  bool // some of them
}

// control is a control cycle: the seed's, or ours.
type control interface {
	Observe(collective.ID, collective.Reading)
	Remove(collective.ID)
	Caps(now time.Duration) map[collective.ID]collective.Cap
	Controlling() bool
	Required(collective.ID) (unit.Rate, bool)
	Weigh(collective.ID, float64)
}

// member is a connection as it was at the last look.
type member struct {
	*sockops.Connection
	cap collective.Cap
}

// New watches the policies' cgroups. With dry it caps nothing, and only tells what it
// would do.
func New(table *sockops.Table, policies []collective.Policy, dry bool) (*Host, error) {
	h := &Host{table: table, dry: dry}
	// What a killed program capped is let go while its programs are still there.
	table.Lift()
	h.waitLifted()
	if err := table.Detach(len(policies)); err != nil {
		return nil, err
	}
	var watched []sockops.Set
	for i, p := range policies {
		w := sockops.Set{Number: uint32(i), Cgroup: p.Cgroup, Rules: p.Rules}
		if err := table.Attach(w); err != nil {
			return nil, errors.Join(fmt.Errorf("set %s: %w", p.Name, err), table.Detach(0))
		}
		watched = append(watched, w)
		s := &set{policy: p, control: &collective.Control{}, members: map[collective.ID]*member{}}
		if p.Seed {
			s.control = &collective.Seed{}
		}
		h.sets = append(h.sets, s)
	}
	// As for new connections, the nearest cgroup has them.
	slices.SortStableFunc(watched, func(a, b sockops.Set) int { return b.Depth() - a.Depth() })
	for _, w := range watched {
		if err := table.Join(w); err != nil {
			slog.Warn("connections that are open already are left alone", "set", policies[w.Number].Name, "error", err)
		}
	}
	return h, nil
}

// Run looks and caps until ctx ends, then lifts all caps. Each state goes to show, so often
// as every says.
func (h *Host) Run(ctx context.Context, every time.Duration, show func([]State) error) error {
	tick := time.NewTimer(Tick)
	defer tick.Stop()
	var shown time.Time // the first at once
	for {
		h.Look()
		if now := time.Now(); now.Sub(shown) >= every {
			shown = now
			if err := show(h.State()); err != nil {
				return errors.Join(err, h.lift())
			}
		}
		tick.Reset(h.pause())
		select {
		case <-ctx.Done():
			return h.lift()
		case <-tick.C:
		}
	}
}

// pause is the time until the next look.
func (h *Host) pause() time.Duration {
	for _, s := range h.sets {
		if s.policy.Seed || s.control.Controlling() {
			return Tick
		}
	}
	return calmTick
}

// Look reads what connections have shown since the last look, and caps them.
func (h *Host) Look() {
	now := sockops.Now()
	h.table.Look(func(c *sockops.Connection) {
		// A set's number that is not ours is of another process's policies.
		if int(c.Set) < len(h.sets) {
			h.sets[c.Set].observe(c)
		}
	}, func(set uint32, id collective.ID) {
		if int(set) < len(h.sets) {
			delete(h.sets[set].members, id)
			h.sets[set].control.Remove(id)
		}
	})
	for _, s := range h.sets {
		s.obey(h.table, s.control.Caps(now), now, h.dry)
	}
}

// observe gives a connection's newest reading to the control, if there is one.
func (s *set) observe(c *sockops.Connection) {
	m := s.members[c.ID]
	if m == nil {
		if !s.policy.Holds(c.Local, c.Remote) {
			return // it was another set's of this number, in a program before this one
		}
		m = &member{Connection: c}
		s.members[c.ID] = m
		if w := s.policy.Weight(c.Local, c.Remote); w > 0 {
			s.control.Weigh(c.ID, w)
		}
		if c.Rounds == 0 {
			return
		}
	} else if c.Rounds == m.Rounds && c.Timeouts == m.Timeouts && c.Resent == m.Resent {
		m.Connection = c
		return
	}
	r := collective.Reading{At: c.Seen, RTT: c.RTT, Newest: c.Newest, Acked: c.Acked, Backlog: unit.Bytes(c.Backlog), ReceiverFull: c.ReceiverFull}
	if c.Marked != m.Marked {
		r.Events |= collective.ECN
	}
	if c.Timeouts != m.Timeouts {
		r.Events |= collective.Timeout
	}
	if c.Resent != m.Resent {
		r.Events |= collective.FastRetransmit
	}
	m.Connection = c
	s.control.Observe(c.ID, r)
}

// obey puts caps in force. A connection without one keeps none: its lease ends.
func (s *set) obey(table *sockops.Table, caps map[collective.ID]collective.Cap, now time.Duration, dry bool) {
	if len(caps) == 0 && !s.capped {
		return
	}
	s.capped = len(caps) > 0
	for id, m := range s.members {
		before := m.cap
		m.cap = caps[id]
		if dry || m.Segment == 0 {
			continue
		}
		switch {
		case m.cap != (collective.Cap{}):
			table.Cap(m.Connection, pace(m.cap.Rate), window(m.cap.Window, m.Segment), now+lease)
		case before != (collective.Cap{}):
			table.Cap(m.Connection, 0, 0, 0)
		}
	}
}

// pace is a rate in the kernel's bytes a second; 0 is no bound.
func pace(r unit.Rate) uint32 { return uint32(min(r.BytesPerSecond(), math.MaxUint32-1)) }

// window is one of bytes in packets; 0 is no bound.
func window(b unit.Bytes, segment uint32) uint32 {
	if b == 0 {
		return 0
	}
	return uint32(min(max(leastWindow, math.Round(float64(b)/float64(segment))), mostWindow))
}

// lift ends all caps, waits until the connections have noticed, and takes the programs
// away. They stay for one that sends nothing, which is let go as soon as it sends.
func (h *Host) lift() error {
	h.table.Lift()
	if h.waitLifted() {
		return h.table.Remove()
	}
	slog.Info("some connections are idle, and will be let go as they send again", "connections", h.capped())
	return nil
}

// waitLifted waits until no connection is capped, for a while, and says whether none is.
func (h *Host) waitLifted() bool {
	for until := time.Now().Add(liftPatience); time.Now().Before(until); time.Sleep(Tick) {
		if h.capped() == 0 {
			return true
		}
	}
	return false
}

// capped is how many connections are.
func (h *Host) capped() (n int) {
	for c := range h.table.Connections() {
		if c.Paced > 0 || c.Clamped > 0 {
			n++
		}
	}
	return n
}

// State is what a set is doing.
type State struct {
	Set string `json:"set"`
	// At is on the kernel's monotonic clock.
	At          time.Duration     `json:"at_ns"`
	Controlling bool              `json:"controlling"`
	Connections []ConnectionState `json:"connections"`
}

// ConnectionState is what a connection of a set is doing.
type ConnectionState struct {
	ID     collective.ID `json:"id"`
	Local  string        `json:"local"`
	Remote string        `json:"remote"`
	// Needs is what it was found to need; 0 is not known yet.
	Needs unit.Rate `json:"needs"`
	// RTT is the newest round trip.
	RTT time.Duration `json:"rtt_ns"`
	// Acked is in bytes, Retransmits in packets, since it began.
	Acked       uint64 `json:"acked"`
	Retransmits uint32 `json:"retransmits"`
	// Window is the cap, in bytes, and Pace; 0 is none.
	Window unit.Bytes `json:"window"`
	Pace   unit.Rate  `json:"pace"`
}

// State is that of all sets, connections in the order of their ids.
func (h *Host) State() (out []State) {
	now := sockops.Now()
	for _, s := range h.sets {
		state := State{Set: s.policy.Name, At: now, Controlling: s.control.Controlling(), Connections: []ConnectionState{}}
		for id, m := range s.members {
			needs, _ := s.control.Required(id)
			state.Connections = append(state.Connections, ConnectionState{
				ID: id, Local: m.Local.String(), Remote: m.Remote.String(), Needs: needs,
				RTT: m.RTT, Acked: m.Acked, Retransmits: m.Retransmits,
				Window: m.cap.Window, Pace: m.cap.Rate,
			})
		}
		slices.SortFunc(state.Connections, func(a, b ConnectionState) int { return cmp.Compare(a.ID, b.ID) })
		out = append(out, state)
	}
	return out
}
