package collective

import (
	"iter"
	"time"

	"headgate.dev/headgate/unit"
)

// Constants from the seed.
const (
	// seedBeta is the ratio of current_rtt to base_rtt that is congestion (III-B-1).
	seedBeta = 1.4
	// seedSlow smooths base_rtt and reqd_bw, seedFast smooths avail_bw: alpha_r and
	// alpha_a.
	seedSlow, seedFast = 0.05, 0.2
	// seedEta is eta of equation 1: "1.15 and 1.25 works reasonably well".
	seedEta = 1.2
)

// Constants that the seed leaves open.
const (
	// seedLevel: current_rtt below this multiple of base_rtt is at its level. The seed
	// saw variations without congestion up to that (III-B-1, "beta < 1.25").
	seedLevel = 1.25
	// seedCalm is the minimum time of calm before a connection is ready to leave. It
	// avoids the trap between the end of the congestion and the hump.
	seedCalm = time.Second
	// seedHump is how long to wait for a hump.
	seedHump = 3 * time.Second
	// seedBack: avail_bw below this multiple of reqd_bw is back from the hump.
	seedBack = 1.05
	// seedSilent: a connection without a reading for this time is idle.
	seedSilent = time.Second
)

// PaperControl is the seed's control cycle over one set of connections. The zero value is ready
// to use.
type PaperControl struct {
	// Eta is eta of equation 1; 0 is 1.2.
	Eta float64
	// MeanAvailable puts the mean of avail_bw over the set in the place of lambda_a in equation 1, which is that of the connection. Then all windows are in proportion of what
	// was learned, also those of connections that have more than their part.
	MeanAvailable bool

	members     map[ID]*seedMember
	controlling bool
}

// seedMember is a connection with its estimates and its progress towards the exit.
type seedMember struct {
	recent
	begun            bool
	base             time.Duration // base_rtt
	required, avail  float64       // reqd_bw and avail_bw, bit/s
	calm             bool
	calmSince        time.Duration
	humped, overHump bool
	ready            bool
}

// Controlling reports whether the set is controlled.
func (s *PaperControl) Controlling() bool { return s.controlling }

// LearnedRate returns the learned rate of a connection, and whether it is known.
func (s *PaperControl) LearnedRate(id ID) (unit.Rate, bool) {
	m := s.members[id]
	if m == nil || !m.begun {
		return 0, false
	}
	return unit.Rate(m.required), true
}

// SetWeight has no effect: the seed has no configured weights.
func (s *PaperControl) SetWeight(ID, float64) {}

// Base returns base_rtt of a connection, or 0.
func (s *PaperControl) Base(id ID) time.Duration {
	if m := s.members[id]; m != nil {
		return m.base
	}
	return 0
}

// Remove removes a connection that has ended.
func (s *PaperControl) Remove(id ID) { delete(s.members, id) }

// Observe processes a reading of a connection. A new connection joins the set.
func (s *PaperControl) Observe(id ID, r Reading) {
	m := s.members[id]
	if m == nil {
		if s.members == nil {
			s.members = map[ID]*seedMember{}
		}
		m = &seedMember{}
		s.members[id] = m
	}
	m.add(r)
	if !m.full() || s.controlling && !m.begun {
		return // nothing can be learned under congestion
	}
	m.estimate(s.controlling)
	congested := r.Events != 0 || float64(m.rtt()) > seedBeta*float64(m.base)
	switch {
	case congested && !s.controlling:
		s.controlling = true
		for _, m := range s.members {
			m.calm, m.ready = false, false
		}
	case congested:
		m.calm, m.ready = false, false
	case s.controlling:
		m.leave(r)
	}
}

// estimate updates the averages; those of a controlled set are frozen.
func (m *seedMember) estimate(frozen bool) {
	if !m.begun {
		m.begun = true
		m.base, m.required, m.avail = m.rtt(), m.rate(), m.rate()
		return
	}
	m.avail += seedFast * (m.rate() - m.avail)
	if !frozen {
		m.base += time.Duration(seedSlow * float64(m.rtt()-m.base))
		m.required += seedSlow * (m.rate() - m.required)
	}
}

// leave moves a connection towards the exit (III-B-3). The conditions are that the round
// trip is at its level, and that the rate rises above the learned rate while there is a
// backlog and falls back, all for some time. Without a hump the connection leaves later.
func (m *seedMember) leave(r Reading) {
	if float64(m.rtt()) > seedLevel*float64(m.base) {
		m.calm, m.ready = false, false
		return
	}
	if !m.calm {
		m.calm, m.calmSince = true, r.At
		m.humped, m.overHump = false, false
	}
	if m.avail > seedBack*m.required {
		m.humped = true
	} else if m.humped && r.Backlog == 0 {
		m.overHump = true
	}
	calm := r.At - m.calmSince
	m.ready = m.overHump && calm >= seedCalm || !m.humped && calm >= seedHump
}

// Caps returns the current window caps of the set's connections, or none if it is not
// controlled.
func (s *PaperControl) Caps(now time.Duration) iter.Seq2[ID, Cap] {
	s.sync(now)
	if !s.controlling {
		return noCaps
	}
	var n, avail, required, rtt float64
	for _, m := range s.members {
		if m.begun && !m.silent(now) {
			n++
			avail, required, rtt = avail+m.avail, required+m.required, rtt+m.rtt().Seconds()
		}
	}
	if n == 0 || required == 0 {
		return noCaps
	}
	avail, required, rtt = avail/n, required/n, rtt/n
	eta := s.Eta
	if eta == 0 {
		eta = seedEta
	}
	return func(yield func(ID, Cap) bool) {
		for id, m := range s.members {
			own := m.avail
			if s.MeanAvailable {
				own = avail
			}
			// Equation 1, in bytes.
			if m.begun && !yield(id, Cap{Window: unit.Bytes(min(eta*own, required) * rtt * m.required / required / 8)}) {
				return
			}
		}
	}
}

func (m *seedMember) silent(now time.Duration) bool { return now-m.at() > seedSilent }

// sync is the common exit: all connections are ready or idle.
func (s *PaperControl) sync(now time.Duration) {
	if !s.controlling {
		return
	}
	for _, m := range s.members {
		if m.begun && !m.ready && !m.silent(now) {
			return
		}
	}
	s.controlling = false
}
