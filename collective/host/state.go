package host

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"headgate/collective"
	"headgate/collective/sockops"
	"headgate/unit"
)

// State is what a set is doing, or its part to one destination.
type State struct {
	Set string `json:"set"`
	// Destination is that of a set that has parts.
	Destination string `json:"destination,omitempty"`
	// Waiting: its cgroup, or unit, is not there.
	Waiting bool `json:"waiting,omitempty"`
	// Trouble is why it is not as it is meant, as a service says of its hosts' sets.
	Trouble string `json:"trouble,omitempty"`
	// DryRun: caps are what it would do.
	DryRun bool `json:"dry_run,omitempty"`
	// At is on the kernel's monotonic clock, as is Since: when it was controlled, or let go.
	At          time.Duration `json:"at_ns"`
	Since       time.Duration `json:"since_ns"`
	Controlling bool          `json:"controlling"`
	// Resent is the part of all segments that were sent again since then, ResentBefore in
	// the time before that.
	Resent       float64           `json:"resent"`
	ResentBefore float64           `json:"resent_before"`
	Connections  []ConnectionState `json:"connections"`
}

// ConnectionState is what a connection of a set is doing.
type ConnectionState struct {
	ID     collective.ID `json:"id"`
	Local  string        `json:"local"`
	Remote string        `json:"remote"`
	// Needs is what it was found to need; 0 is not known yet. Weight by hand counts instead.
	Needs  unit.Rate `json:"needs"`
	Weight float64   `json:"weight,omitempty"`
	// Rate is what was acknowledged in the last second.
	Rate unit.Rate `json:"rate"`
	// RTT is the newest round trip, BaseRTT what it is without a queue.
	RTT     time.Duration `json:"rtt_ns"`
	BaseRTT time.Duration `json:"base_rtt_ns"`
	// Acked is in bytes, Retransmits in packets, since it began.
	Acked       uint64 `json:"acked"`
	Retransmits uint32 `json:"retransmits"`
	// Window is the cap, in bytes, and Pace; 0 is none.
	Window unit.Bytes `json:"window"`
	Pace   unit.Rate  `json:"pace"`
}

// State is that of all sets in the order of the configuration, parts by destination,
// connections in the order of their ids.
func (h *Host) State() (out []State) {
	now := sockops.Now()
	defer func() {
		for i := range out {
			out[i].DryRun = h.dry
		}
	}()
	for _, s := range h.sets {
		if len(s.parts) == 0 { // nobody's destination yet
			out = append(out, State{Set: s.policy.Name, At: now, Since: s.since, Waiting: s.waiting(), Connections: []ConnectionState{}})
		}
		for _, to := range slices.SortedFunc(maps.Keys(s.parts), netip.Addr.Compare) {
			state := s.parts[to].state()
			state.Set, state.At, state.Waiting = s.policy.Name, now, s.waiting()
			if to.IsValid() {
				state.Destination = to.String()
			}
			out = append(out, state)
		}
	}
	return out
}

// waiting tells whether it has a cgroup that is not there.
func (s *set) waiting() bool {
	return s.at.path == "" && (s.policy.Cgroup != "" || s.policy.Unit != "")
}

func (p *part) state() State {
	out := State{Controlling: p.phase.controlling, Since: p.phase.since, Resent: p.phase.now.part(), ResentBefore: p.phase.before.part(), Connections: []ConnectionState{}}
	for id, m := range p.members {
		needs, _ := p.control.Required(id)
		out.Connections = append(out.Connections, ConnectionState{
			ID: id, Local: m.Local.String(), Remote: m.Remote.String(), Needs: needs, Weight: m.weight,
			Rate: m.rate.newest, RTT: m.RTT, BaseRTT: p.control.Base(id), Acked: m.Acked, Retransmits: m.Retransmits,
			Window: m.cap.Window, Pace: m.cap.Rate,
		})
	}
	slices.SortFunc(out.Connections, func(a, b ConnectionState) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// phase is a time in which a part is controlled, or is not.
type phase struct {
	controlling bool
	since       time.Duration
	now, before resent
}

func (p *phase) begin(at time.Duration, controlling bool) {
	p.controlling, p.since = controlling, at
	p.before, p.now = p.now, resent{}
}

func (p *phase) count(segments, again uint32) {
	p.now.segments += float64(segments)
	p.now.again += float64(again)
}

// resent is how many segments were sent, and how many of them again.
type resent struct{ segments, again float64 }

func (r resent) part() float64 { return r.again / max(r.segments, 1) }

// rate is what a connection got from one slow tick to the next.
type rate struct {
	acked  uint64
	at     time.Duration
	newest unit.Rate
}

func (s *set) rates(now time.Duration) {
	for _, p := range s.parts {
		for _, m := range p.members {
			if m.Rounds == 0 {
				continue // one that was open before has not said yet what it sent till then
			}
			if m.rate.at > 0 {
				m.rate.newest = unit.Rate(float64(m.Acked-m.rate.acked) * 8 / (now - m.rate.at).Seconds())
			}
			m.rate.acked, m.rate.at = m.Acked, now
		}
	}
}
