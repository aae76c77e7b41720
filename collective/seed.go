package collective

import (
	"iter"
	"time"

	"headgate/unit"
)

// From the seed.
const (
	// seedBeta: current_rtt over base_rtt that is congestion (III-B-1).
	seedBeta = 1.4
	// seedSlow smooths base_rtt and reqd_bw, seedFast avail_bw: alpha_r and alpha_a.
	seedSlow, seedFast = 0.05, 0.2
	// seedEta is eta of equation 1: "1.15 and 1.25 works reasonably well".
	seedEta = 1.2
)

// What the seed leaves open.
const (
	// seedLevel: current_rtt below so many base_rtt has fallen to its level. The seed saw
	// variations without congestion up to that (III-B-1, "beta < 1.25").
	seedLevel = 1.25
	// seedCalm is the least time of calm before a connection is ready to leave, which
	// avoids the trap between the end of the congestion and the hump.
	seedCalm = time.Second
	// seedHump is for how long a hump is waited for.
	seedHump = 3 * time.Second
	// seedBack: avail_bw below so many reqd_bw is back from the hump.
	seedBack = 1.05
	// seedSilent: a connection that shows nothing for so long is idle.
	seedSilent = time.Second
)

// Seed is the seed's control cycle over one set of connections. Its zero value is ready.
type Seed struct {
	// Eta is eta of equation 1; 0 is 1.2.
	Eta float64

	members     map[ID]*seedMember
	controlling bool
}

// seedMember is a connection: its estimates, and how far it is on the way out.
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

// Controlling tells whether the set is capped.
func (s *Seed) Controlling() bool { return s.controlling }

// Required is what a connection was found to need, and whether that is known.
func (s *Seed) Required(id ID) (unit.Rate, bool) {
	m := s.members[id]
	if m == nil || !m.begun {
		return 0, false
	}
	return unit.Rate(m.required), true
}

// Weigh does nothing: the seed's connections weigh what they need.
func (s *Seed) Weigh(ID, float64) {}

// Base is base_rtt of a connection, or 0.
func (s *Seed) Base(id ID) time.Duration {
	if m := s.members[id]; m != nil {
		return m.base
	}
	return 0
}

// Remove forgets a connection that has ended.
func (s *Seed) Remove(id ID) { delete(s.members, id) }

// Observe takes a reading of a connection; one that it has not seen yet joins the set.
func (s *Seed) Observe(id ID, r Reading) {
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
		return // what a connection needs cannot be learnt under congestion
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

// estimate brings the averages up to date; frozen are those of a set that is controlled.
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

// leave moves a connection towards the exit (III-B-3): the round trip is what it was; what
// it gets rises beyond what it needs while there is a backlog, and falls back; and all that
// for some time. Without a hump it leaves later.
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

// Caps are what the set's connections may have in flight now; none if it is not controlled.
func (s *Seed) Caps(now time.Duration) iter.Seq2[ID, Cap] {
	s.sync(now)
	if !s.controlling {
		return nobody
	}
	var n, avail, required, rtt float64
	for _, m := range s.members {
		if m.begun && !m.silent(now) {
			n++
			avail, required, rtt = avail+m.avail, required+m.required, rtt+m.rtt().Seconds()
		}
	}
	if n == 0 || required == 0 {
		return nobody
	}
	avail, required, rtt = avail/n, required/n, rtt/n
	eta := s.Eta
	if eta == 0 {
		eta = seedEta
	}
	return func(yield func(ID, Cap) bool) {
		for id, m := range s.members {
			// Equation 1, in bytes.
			if m.begun && !yield(id, Cap{Window: unit.Bytes(min(eta*avail, required) * rtt * m.required / required / 8)}) {
				return
			}
		}
	}
}

func (m *seedMember) silent(now time.Duration) bool { return now-m.at() > seedSilent }

// sync is the common exit: all are ready, or idle.
func (s *Seed) sync(now time.Duration) {
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
