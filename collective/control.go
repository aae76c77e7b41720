package collective

import (
	"iter"
	"math"
	"time"

	"headgate/unit"
)

// Ours, of who needs what and when control begins and ends.
const (
	// needMemory is how long what a connection needs is remembered: means over less differ
	// by more than the proportion is held (2.4 Mbit/s in messages of 12 KB: 20 % over a
	// second, 4 % over 25).
	needMemory = 60 * time.Second
	// baseMemory is how long it takes until a longer round trip is what it is to be.
	baseMemory = 30 * time.Second
	// idleAfter: a connection that shows nothing for so long, or four round trips, is idle.
	idleAfter = time.Second
	// leastRise is how much a round trip must have grown to be congestion, beside
	// seedBeta: the host's own delays come to that.
	leastRise = 2 * time.Millisecond
	// leastSlow is for how long it must have: what a connection sends at once passes before.
	leastSlow = 250 * time.Millisecond
	// calmFor is how long nobody must have come short, or lost anything, before control ends.
	calmFor = 3 * time.Second
	// burst: what waits for longer was not sent at once.
	burst = time.Second
	// stoodStill: with so much from one step to the next the machine did.
	stoodStill = time.Second
	// short: less than so much of what a connection needs is too little.
	short = 0.87
	// plenty: with so much of what it needs a set has enough.
	plenty = 1.1
	// learnt: what a connection needs is not known from less.
	learnt = 2 * time.Second
	// settled: what one that has work waiting gets is what it needs after so long, if that was
	// known before. Until a path that fills is full, Reno and CUBIC draw near to equal parts:
	// 3.5 s of it, on 250 Mbit/s and 25 ms, put five that were 8:4:2:1:1 off by 12 %.
	settled = 10 * time.Second
	// freshFor is for how long a set's totals are as good as new.
	freshFor = 10 * time.Millisecond
	// Averages over what just happens, and over what goes on.
	soon, lasting = 100 * time.Millisecond, 2 * time.Second
)

// Control is our control cycle over one set of connections: the seed's, with a queue budget
// in the place of equation 1 (law.go), shares that are held to the byte (shares.go), and
// readings weighed by time. Its zero value is ready.
type Control struct {
	by          map[ID]*member
	members     []*member // the same: of thousands a map takes ten times as long to walk
	law         law
	controlling bool
	recently    totals
	sight       sight         // of the last look while it is controlled
	got         float64       // bits, by all
	calm        time.Duration // since then nobody came short
	stepped     time.Duration
	began       time.Duration
	// sated: the set was let go with work waiting that needs no help.
	sated bool
}

// totals are of a set, at a time, in bit/s.
type totals struct {
	at              time.Duration
	attained, needs float64
}

// member is a connection of a Control.
type member struct {
	id     ID
	at     int     // in Control.members
	weight float64 // by hand; 0 is what it needs
	joined bool    // it has readings enough to be judged
	base   time.Duration
	rtt    time.Duration
	need   mean
	// pending is what it got since no work was waiting.
	pending mean
	// What it gets, in bit/s, over a few round trips and over what goes on.
	rate, lasts float64
	// waits is the part of its readings in which work was waiting, over a few round trips,
	// kept for how long it has been more than half, busy when that was last longer than a burst.
	waits      float64
	kept, busy time.Duration
	// lead is how many bits it is ahead of its share, booked what it got since that was known,
	// and due what its share is multiplied by, so that it makes up for the past.
	lead, booked, due float64
	// cap is the newest that it was told, let how many bits that has let pass and are not booked.
	cap  Cap
	let  float64
	lost bool // since the last step
	// fast is when its round trip was last as it is to be, had what the set had got then, slow
	// what it got since.
	fast   time.Duration
	had    float64
	slow   float64
	newest Reading
	recent
}

// mean is a rate that remembers for needMemory.
type mean struct{ bits, seconds float64 }

func (m *mean) add(bits, seconds float64) {
	keep := math.Exp(-seconds / needMemory.Seconds())
	m.bits, m.seconds = m.bits*keep+bits, m.seconds*keep+seconds
}

func (m mean) rate() float64 {
	if m.seconds == 0 {
		return 0
	}
	return m.bits / m.seconds
}

// Controlling tells whether the set is capped.
func (c *Control) Controlling() bool { return c.controlling }

// Required is what a connection was found to need, and whether that is known.
func (c *Control) Required(id ID) (unit.Rate, bool) {
	m := c.by[id]
	if m == nil || !m.joined {
		return 0, false
	}
	return unit.Rate(m.need.rate()), true
}

// Base is a connection's round trip without a queue, or 0 if it is not known yet.
func (c *Control) Base(id ID) time.Duration {
	if m := c.by[id]; m != nil {
		return m.base
	}
	return 0
}

// Remove forgets a connection that has ended.
func (c *Control) Remove(id ID) {
	m := c.by[id]
	if m == nil {
		return
	}
	delete(c.by, id)
	end := len(c.members) - 1
	last := c.members[end]
	last.at, c.members[m.at] = m.at, last
	c.members[end] = nil
	c.members = c.members[:end]
}

// Weigh gives a connection a weight by hand, in any unit that is the same for all of the
// set. It then counts instead of what the connection needs.
func (c *Control) Weigh(id ID, weight float64) { c.member(id).weight = weight }

func (c *Control) member(id ID) *member {
	m := c.by[id]
	if m == nil {
		if c.by == nil {
			c.by = map[ID]*member{}
		}
		m = &member{id: id, at: len(c.members), due: 1}
		c.by[id] = m
		c.members = append(c.members, m)
	}
	return m
}

// Observe takes a reading of a connection; one that it has not seen yet joins the set.
func (c *Control) Observe(id ID, r Reading) {
	m := c.member(id)
	before := m.newest
	m.newest = r
	m.add(r)
	if !m.full() {
		return
	}
	m.lost = m.lost || r.Events != 0
	gap := r.At - before.At
	if gap > max(idleAfter, 4*m.rtt) && r.Events&Timeout == 0 {
		// The time in between says nothing of what it needs, or of how it is served.
		m.even()
		m.n, m.pending, m.kept = 1, mean{}, 0
		return
	}
	bits := float64(r.Acked-before.Acked) * 8
	c.got += bits
	m.book(bits, gap)
	m.measure(bits, gap, r)
	c.learn(m, bits, gap.Seconds(), m.waits > 0.5)
	if slow := float64(r.Newest) > seedBeta*float64(m.base) && r.Newest-m.base > leastRise; !slow {
		m.fast, m.had, m.slow = r.At, c.got, 0
	} else {
		m.slow += bits
	}
	if m.rtt < m.base || !c.controlling || c.unhurt() {
		m.settle(gap)
	}
	if !c.controlling && m.known() && c.congested(m, r) {
		c.begin(r.At)
	}
}

// learn adds to what a connection needs what it got from one reading without work waiting to
// the next such: all that was offered meanwhile. With work waiting all the time that is more
// or less than it needs, and counts only while nobody holds it back, and no path is filling.
func (c *Control) learn(m *member, bits, seconds float64, waits bool) {
	m.pending.bits, m.pending.seconds = m.pending.bits+bits, m.pending.seconds+seconds
	long := m.pending.seconds > learnt.Seconds()
	filling := m.known() && !c.controlling && m.pending.seconds <= settled.Seconds()
	switch {
	case waits && (!long || filling):
		return
	case !m.known(), !c.controlling && !(c.sated && long), !long && c.law.allowed > c.law.full:
		m.need.add(m.pending.bits, m.pending.seconds)
	}
	m.pending = mean{}
}

// measure brings up to date what is true under control as well.
func (m *member) measure(bits float64, gap time.Duration, r Reading) {
	m.rtt = m.least()
	if !m.joined {
		m.joined, m.base = true, m.rtt
		m.rate, m.lasts = m.recent.rate(), m.recent.rate()
	}
	if gap == 0 {
		return
	}
	waits := one(r.Waits())
	now := part(gap, max(2*m.rtt, soon))
	m.rate += now * (bits/gap.Seconds() - m.rate)
	m.waits += now * (waits - m.waits)
	m.lasts += part(gap, lasting) * (bits/gap.Seconds() - m.lasts)
	if m.kept += gap; m.kept > burst {
		m.busy = r.At
	}
	if m.waits <= 0.5 {
		m.kept = 0
	}
}

// settle brings up to date what the round trip is while all is well: at once if it has
// become shorter, slowly if the path has become longer.
func (m *member) settle(took time.Duration) {
	if m.rtt < m.base {
		m.base = m.rtt
		return
	}
	m.base += time.Duration(part(took, baseMemory) * float64(m.rtt-m.base))
}

// known tells whether there is something to hold the connection to.
func (m *member) known() bool { return m.joined && m.need.seconds >= learnt.Seconds() }

// congested tells whether a connection's reading is the set event.
func (c *Control) congested(m *member, r Reading) bool {
	slowFor := r.At - m.fast
	if slowFor < leastSlow && r.Events == 0 {
		return false
	}
	// What a set does to itself by more than it needs is not congestion, as long as no
	// connection comes short; who gave weights wants them held then, too.
	if m.weight > 0 || m.behind() && m.lasts < short*m.need.rate() {
		return true
	}
	if c.sated {
		return false
	}
	attained, needs := c.lately(r.At)
	if slowFor >= leastSlow { // since there is a queue it is all that the path leaves it
		attained = (c.got - m.had) / slowFor.Seconds()
	}
	return attained < plenty*needs
}

// lately is what the set gets, and needs, in bit/s.
func (c *Control) lately(now time.Duration) (attained, needs float64) {
	// All of thousands may tell of something at once.
	if l := &c.recently; l.at == 0 || now < l.at || now-l.at > freshFor {
		*l = totals{at: now}
		for _, m := range c.members {
			if m.counts(now) {
				l.attained, l.needs = l.attained+m.rate, l.needs+m.need.rate()
			}
		}
	}
	return c.recently.attained, c.recently.needs
}

func (c *Control) begin(at time.Duration) {
	c.controlling, c.sated = true, false
	c.began, c.stepped, c.calm = at, at, at
	c.sight = sight{}
	needs, shares := 0.0, 0.0
	for _, m := range c.members {
		m.even()
		m.booked, m.lost, m.cap, m.let = m.slow, false, Cap{}, 0
		if m.counts(at) {
			needs, shares = needs+m.need.rate(), shares+m.share()
			c.sight.judge(m)
		}
	}
	if shares == 0 {
		shares = 1
	}
	c.law = newLaw(max(needs, 1) / shares)
}

// share is what its part of the set is measured by.
func (m *member) share() float64 {
	if m.weight > 0 {
		return m.weight
	}
	return max(m.need.rate(), 1)
}

// counts tells whether a connection is in the set's averages.
func (m *member) counts(now time.Duration) bool {
	return m.known() && now-m.newest.At < max(idleAfter, 4*m.rtt)
}

// behind tells whether it has had work waiting for long: more than its caps make of bursts.
func (m *member) behind() bool { return m.kept > learnt }

// waiting tells whether a connection has more to send than it may.
func (m *member) waiting(now time.Duration) bool { return m.counts(now) && m.waits > 0.5 }

// Caps are what the set's connections may send now; none if it is not controlled.
func (c *Control) Caps(now time.Duration) iter.Seq2[ID, Cap] {
	if !c.controlling {
		c.refresh(now)
		return nobody
	}
	c.sight = c.look(now)
	if took := now - c.stepped; took >= max(c.sight.rtt, stepLeast) {
		c.stepped = now
		if took > stoodStill { // of that time nobody knows anything
			took, c.calm = stoodStill, now
		}
		c.law.step(c.sight, took)
		c.hold(c.sight, now)
		if c.over(c.sight, now) {
			c.controlling = false
			return nobody
		}
	}
	return c.caps
}

func nobody(func(ID, Cap) bool) {}

func (c *Control) caps(yield func(ID, Cap) bool) {
	for _, m := range c.members {
		if !m.known() {
			continue
		}
		m.cap = c.law.cap(m, c.sight)
		if !yield(m.id, m.cap) {
			return
		}
	}
}

// refresh notices that nothing waits any more: the next congestion is a new one.
func (c *Control) refresh(now time.Duration) {
	if !c.sated {
		return
	}
	for _, m := range c.members {
		if m.counts(now) && m.behind() {
			return
		}
	}
	c.sated = false
}

// over tells whether control has done its work: for a while nobody came short, and nobody
// would without it, and what was lost was lost by taking more than is needed.
func (c *Control) over(s sight, now time.Duration) bool {
	lost := s.lost > 0 && s.carried < plenty*s.needs
	stands := s.members > 0 && s.behind == 0 && c.law.standing.before > s.budget
	if lost || stands || !s.enough() {
		c.calm = now
	}
	if now-c.calm < s.patience() {
		return false
	}
	c.sated = s.behind > 0
	return true
}

// unhurt tells whether nobody is behind, and nothing was lost for long: a queue that is still
// there is the path's, which has become longer.
func (c *Control) unhurt() bool {
	lately := c.law.lostAt != 0 && c.law.clock-c.law.lostAt <= lasting
	return c.sight.behind == 0 && !lately
}
