package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/unit/rounded"
)

// State is the state of a set, or of its part for one destination.
type State struct {
	Set string `json:"set"`
	// Destination is the remote address, for a set with parts by destination.
	Destination string `json:"destination,omitempty"`
	// Bottleneck is a number of the bottleneck, for a set with parts by bottleneck.
	Bottleneck collective.ID `json:"bottleneck,omitempty"`
	// Waiting is set if the cgroup, or unit, does not exist.
	Waiting bool `json:"cgroup_missing,omitempty"`
	// Error is the error that keeps the set from its desired state, as the controller
	// reports it.
	Error string `json:"error,omitempty"`
	// Notice is what the user of the set should know: why it was suspended, or that nothing can be held.
	Notice string `json:"notice,omitempty"`
	// DryRun is set if the caps are not in force.
	DryRun bool `json:"dry_run,omitempty"`
	// At is on the kernel's monotonic clock, as is Since: the begin or the end of
	// control.
	At          time.Duration `json:"at_ns"`
	Since       time.Duration `json:"since_ns"`
	Controlling bool          `json:"controlling"`
	// Resent is the fraction of segments that were retransmitted since Since,
	// ResentBefore in the period before.
	Resent       float64           `json:"retransmitted"`
	ResentBefore float64           `json:"retransmitted_before"`
	Connections  []ConnectionState `json:"connections"`
}

// ConnectionState is the state of a connection of a set.
type ConnectionState struct {
	ID     collective.ID `json:"id"`
	Local  string        `json:"local"`
	Remote string        `json:"remote"`
	// Needs is the learned rate; 0 is unknown. A configured Weight replaces it.
	Needs  unit.Rate `json:"learned_rate"`
	Weight float64   `json:"weight,omitempty"`
	// Rate is the rate of acknowledged bytes in the last second.
	Rate unit.Rate `json:"rate"`
	// RTT is the newest round trip, BaseRTT the round trip without a queue.
	RTT     time.Duration `json:"rtt_ns"`
	BaseRTT time.Duration `json:"base_rtt_ns"`
	// Acked is in bytes, Retransmits in packets, since the connection began.
	Acked       uint64 `json:"acked"`
	Retransmits uint32 `json:"retransmits"`
	// Window is the window cap in bytes, Pace the pacing cap; 0 is none.
	Window unit.Bytes `json:"window_cap"`
	Pace   unit.Rate  `json:"pacing_cap"`
}

// State returns the states of all sets in the order of the configuration, parts by
// destination, connections by ID.
func (h *Host) State() (out []State) {
	now := sockops.Now()
	defer func() {
		for i := range out {
			out[i].DryRun = h.dry
		}
	}()
	for _, s := range h.sets {
		if len(s.parts) == 0 { // no connection yet
			out = append(out, State{Set: s.policy.Name, At: now, Since: s.since, Waiting: s.waiting(), Connections: []ConnectionState{}})
		}
		for _, k := range slices.SortedFunc(maps.Keys(s.parts), partKey.compare) {
			state := s.parts[k].state()
			state.Set, state.At, state.Waiting, state.Notice = s.policy.Name, now, s.waiting(), s.parts[k].notice(now)
			if k.to.IsValid() {
				state.Destination = k.to.String()
			}
			state.Bottleneck = k.bottleneck
			out = append(out, state)
		}
	}
	return out
}

func (k partKey) compare(o partKey) int {
	return cmp.Or(k.to.Compare(o.to), cmp.Compare(k.bottleneck, o.bottleneck))
}

// waiting reports whether the set's cgroup does not exist.
func (s *set) waiting() bool {
	return s.cgroup.path == "" && (s.policy.Cgroup != "" || s.policy.Unit != "")
}

func (p *part) state() State {
	out := State{Controlling: p.phase.controlling, Since: p.phase.since, Resent: p.phase.now.fraction(), ResentBefore: p.phase.before.fraction(), Connections: []ConnectionState{}}
	for id, m := range p.members {
		needs, _ := p.control.LearnedRate(id)
		out.Connections = append(out.Connections, ConnectionState{
			ID: id, Local: m.Local.String(), Remote: m.Remote.String(), Needs: needs, Weight: m.weight,
			Rate: m.rate.newest, RTT: m.RTT, BaseRTT: p.control.Base(id), Acked: m.Acked, Retransmits: m.Retransmits,
			Window: m.cap.Window, Pace: m.cap.Rate,
		})
	}
	slices.SortFunc(out.Connections, func(a, b ConnectionState) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// silentAfter is the time after which connections are said to have sent nothing.
const silentAfter = 10 * time.Second

// notice returns what the user of the set should know.
func (p *part) notice(now time.Duration) string {
	if p.learns != nil {
		if r := p.learns.Suspended(); now < r.Until {
			return fmt.Sprintf("suspended for another %v: under control it carried %s, and as many ordinary connections would have carried %s",
				(r.Until - now).Round(time.Second), rounded.Rate(float64(r.Carried)), rounded.Rate(float64(r.Fair)))
		}
	}
	for _, m := range p.members {
		if m.Rounds > 0 || now-m.since < silentAfter {
			return ""
		}
	}
	if len(p.members) == 0 {
		return ""
	}
	return fmt.Sprintf("this host has sent nothing over %s: only what it sends can be held; run the set on the host that sends", text.Count(len(p.members), "connection"))
}

// phase is a period with or without control.
type phase struct {
	controlling bool
	since       time.Duration
	now, before retransmissions
}

func (p *phase) begin(at time.Duration, controlling bool) {
	p.controlling, p.since = controlling, at
	p.before, p.now = p.now, retransmissions{}
}

func (p *phase) count(segments, retransmitted uint32) {
	p.now.segments += float64(segments)
	p.now.retransmitted += float64(retransmitted)
}

// retransmissions is the number of segments that were sent, and of those that were retransmitted.
type retransmissions struct{ segments, retransmitted float64 }

func (r retransmissions) fraction() float64 { return r.retransmitted / max(r.segments, 1) }

// rate is the rate of a connection between two slow ticks.
type rate struct {
	acked  uint64
	at     time.Duration
	newest unit.Rate
}

func (s *set) rates(now time.Duration) {
	for _, p := range s.parts {
		for _, m := range p.members {
			if m.Rounds == 0 {
				continue // a connection that was already open has not reported its earlier bytes yet
			}
			if m.rate.at > 0 {
				m.rate.newest = unit.Rate(float64(m.Acked-m.rate.acked) * 8 / (now - m.rate.at).Seconds())
			}
			m.rate.acked, m.rate.at = m.Acked, now
		}
	}
}
