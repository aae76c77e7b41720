package collective

import (
	"iter"
	"math"
	"time"

	"headgate.dev/headgate/unit"
)

// Constants of the learned rates and of the begin and end of control, chosen by Headgate.
const (
	// needMemory is the time over which the learned rate is averaged. Averages over less
	// time differ by more than the accuracy of the proportion (2.4 Mbit/s in messages of
	// 12 KB: 20 % over 1 s, 4 % over 25 s).
	needMemory = 60 * time.Second
	// baseMemory is the time after which a longer round trip is the new base.
	baseMemory = 30 * time.Second
	// idleAfter: a connection without a reading for this time, or for four round trips,
	// is idle.
	idleAfter = time.Second
	// minRTTRise is the minimum increase of a round trip for congestion, in addition to
	// seedBeta: delays of the host itself reach it.
	minRTTRise = 2 * time.Millisecond
	// minSlowTime is the minimum duration of the increase: a burst of a connection is
	// shorter.
	minSlowTime = 250 * time.Millisecond
	// calmDuration is how long no connection may be behind or lose packets before control
	// ends.
	calmDuration = 3 * time.Second
	// noSign is how long a set with learned rates is controlled without a loss and without a queue, though a connection is behind: its own path is slow.
	noSign = 5 * time.Second
	// burst is the longest time that a burst waits in a queue.
	burst = time.Second
	// stallTime: a longer time between two steps means that the machine stalled.
	stallTime = time.Second
	// behindThreshold: a connection that gets less than this fraction of its learned rate is
	// behind.
	behindThreshold = 0.87
	// enoughFactor: a set that gets this multiple of its learned rate has enough.
	enoughFactor = 1.1
	// minLearning is the minimum time after which a learned rate is known.
	minLearning = 2 * time.Second
	// maxFilling is the time after which the rate of a connection with backlog becomes its
	// learned rate, if that was known before. Until the path is full, Reno and CUBIC
	// converge to equal parts: 3.5 s of it, on 250 Mbit/s and 25 ms, put five that were
	// 8:4:2:1:1 off by 12 %.
	maxFilling = 10 * time.Second
	// freshFor is how long the totals of a set are cached.
	freshFor = 10 * time.Millisecond
	// shortAverage and longAverage are the times of short and long averages.
	shortAverage, longAverage = 100 * time.Millisecond, 2 * time.Second
)

// Control is Headgate's control cycle over one set of connections. It is the seed's with
// a queue budget in place of equation 1 (scale.go), shares that are accounted by the byte
// (shares.go), and readings weighed by time. The zero value is ready to use.
type Control struct {
	by           map[ID]*member
	members      []*member // the values of by: iterating over a map of thousands takes ten times as long
	classes      map[string]*class
	scaleControl scaleControl
	controlling  bool
	recently     totals
	summary      summary       // from the last look during control
	ackedBits    float64       // bits acknowledged of all connections
	calm         time.Duration // since when no connection is behind
	stepped      time.Duration
	began        time.Duration
	// releasedWithBacklog is set if the set was released while it had backlog and needed no control.
	releasedWithBacklog bool
	fallback            fallback
}

// totals are the rates of a set at a time, in bit/s.
type totals struct {
	at              time.Duration
	attained, needs float64
}

// member is a connection of a Control.
type member struct {
	id      ID
	at      int     // index in Control.members
	weight  float64 // configured weight; 0 is the learned rate
	class   *class  // nil is none
	joined  bool    // it has enough readings
	base    time.Duration
	rtt     time.Duration
	learned mean
	// pending is the rate since the connection last had no backlog.
	pending mean
	// rate and lasts are its rate in bit/s, averaged over a few round trips and over
	// longAverage.
	rate, lasts float64
	// backlogFraction is the fraction of recent readings with backlog, over a few round trips.
	// backlogTime is how long backlogFraction has been more than half. busy is when backlogTime
	// was last longer than a burst.
	backlogFraction   float64
	backlogTime, busy time.Duration
	// lead is the number of bits by which it is ahead of its share. booked is the bits
	// acknowledged since lead was updated. due is the factor for its share that
	// compensates for lead.
	lead, booked, due float64
	// cap is its current cap, let the bits that the cap has allowed and that are not
	// booked.
	cap  Cap
	let  float64
	lost bool // lost packets since the last step
	// assumed is what it is taken to need while its own learned rate is unknown, in bit/s; 0 is none.
	assumed float64
	// lastNormal is when its round trip was last normal. had is the bits of the set until then,
	// slow its own bits since then.
	lastNormal time.Duration
	had        float64
	slow       float64
	newest     Reading
	ordinary   ordinary
	recent
}

// mean is a rate that is averaged over needMemory.
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

// Controlling reports whether the set is controlled.
func (c *Control) Controlling() bool { return c.controlling }

// LearnedRate returns the learned rate of a connection, and whether it is known.
func (c *Control) LearnedRate(id ID) (unit.Rate, bool) {
	m := c.by[id]
	if m == nil || !m.joined {
		return 0, false
	}
	return unit.Rate(m.need()), true
}

// Base returns the round trip of a connection without a queue, or 0 if it is not known
// yet.
func (c *Control) Base(id ID) time.Duration {
	if m := c.by[id]; m != nil {
		return m.base
	}
	return 0
}

// Need returns what is known of a connection.
func (c *Control) Need(id ID) Need {
	m := c.by[id]
	if m == nil {
		return Need{}
	}
	return Need{Bits: m.learned.bits, Seconds: m.learned.seconds, Base: m.base}
}

// Inherit sets what is known of a new connection: of another one, in whose place it is, or of itself by an earlier process. Its own readings replace it in time.
func (c *Control) Inherit(id ID, n Need) {
	m := c.member(id)
	m.learned, m.base = mean{n.Bits, n.Seconds}, n.Base
}

// Assume sets what a connection is taken to need while its own learned rate is unknown, in bit/s, and what its round trip without a queue is taken to be until its first
// reading; 0 is unknown.
func (c *Control) Assume(id ID, rate float64, base time.Duration) {
	m := c.member(id)
	m.assumed = rate
	if !m.joined {
		m.base = base
	}
}

// NewCap returns the cap of a connection that begins now, of which a need in bit/s is assumed; ok is false if the set is not controlled.
func (c *Control) NewCap(need float64) (_ Cap, ok bool) {
	if !c.controlling || need <= 0 || c.summary.members == 0 {
		return Cap{}, false
	}
	m := &member{assumed: need, due: 1, rtt: c.summary.rtt}
	return c.scaleControl.cap(m, c.summary), true
}

// Remove removes a connection that has ended.
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

// SetWeight sets the configured weight of a connection, in any unit that is the same for the
// whole set. The weight replaces the learned rate.
func (c *Control) SetWeight(id ID, weight float64) { c.member(id).weight = weight }

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

// Observe processes a reading of a connection. A new connection joins the set.
func (c *Control) Observe(id ID, r Reading) {
	m := c.member(id)
	before := m.newest
	m.newest = r
	m.add(r)
	if early := !m.joined && m.hasNeed() && m.n > 1; !early && !m.full() {
		return
	}
	m.lost = m.lost || r.Events != 0
	if c.controlling {
		c.loseFair(r, m.rtt)
	}
	gap := r.At - before.At
	if gap > max(idleAfter, 4*m.rtt) && r.Events&Timeout == 0 {
		// The time in between shows neither the connection's demand nor its service.
		m.resetLead()
		m.n, m.pending, m.backlogTime = 1, mean{}, 0
		return
	}
	bits := float64(r.Acked-before.Acked) * 8
	c.ackedBits += bits
	m.book(bits, gap)
	if !m.joined {
		m.lastNormal, m.had = r.At, c.ackedBits
	}
	m.measure(bits, gap, r)
	c.learn(m, bits, gap.Seconds(), m.backlogFraction > 0.5)
	if slow := float64(r.Newest) > seedBeta*float64(m.base) && r.Newest-m.base > minRTTRise; !slow {
		m.lastNormal, m.had, m.slow = r.At, c.ackedBits, 0
	} else {
		m.slow += bits
	}
	if m.rtt < m.base || !c.controlling || c.undisturbed() {
		m.settle(gap)
	}
	if !c.controlling && m.known() && !c.fallback.held(r.At) && c.congested(m, r) {
		c.begin(r.At)
	}
}

// learn adds the rate between two readings without backlog to the learned rate:
// everything that the application offered in that time. With backlog throughout, the rate
// may be more or less than the demand. It then counts only without control, and not while
// a path fills.
func (c *Control) learn(m *member, bits, seconds float64, waits bool) {
	m.pending.bits, m.pending.seconds = m.pending.bits+bits, m.pending.seconds+seconds
	long := m.pending.seconds > minLearning.Seconds()
	filling := m.known() && !c.controlling && m.pending.seconds <= maxFilling.Seconds()
	switch {
	case waits && (!long || filling):
		return
	case !m.known(), !c.controlling && !(c.releasedWithBacklog && long), !long && c.scaleControl.allowed > c.scaleControl.full:
		m.learned.add(m.pending.bits, m.pending.seconds)
	}
	m.pending = mean{}
}

// measure updates the estimates that are valid also under control.
func (m *member) measure(bits float64, gap time.Duration, r Reading) {
	m.rtt = m.minRTT()
	if !m.joined {
		m.joined = true
		if m.base == 0 {
			m.base = m.rtt
		}
		if m.full() {
			m.rate = m.recent.rate()
		} else {
			m.rate = bits / max(gap, m.rtt, minRTT).Seconds()
		}
		m.lasts = m.rate
	}
	if gap == 0 {
		return
	}
	waits := one(r.HasBacklog())
	now := part(gap, max(2*m.rtt, shortAverage))
	m.rate += now * (bits/gap.Seconds() - m.rate)
	m.backlogFraction += now * (waits - m.backlogFraction)
	m.lasts += part(gap, longAverage) * (bits/gap.Seconds() - m.lasts)
	if m.backlogTime += gap; m.backlogTime > burst {
		m.busy = r.At
	}
	if m.backlogFraction <= 0.5 {
		m.backlogTime = 0
	}
}

// settle updates the base round trip: at once if the round trip has become shorter,
// slowly if the path has become longer.
func (m *member) settle(took time.Duration) {
	if m.rtt < m.base {
		m.base = m.rtt
		return
	}
	m.base += time.Duration(part(took, baseMemory) * float64(m.rtt-m.base))
}

// known reports whether the connection has readings, and its need is known or assumed.
func (m *member) known() bool { return m.joined && m.hasNeed() }

func (m *member) hasNeed() bool { return m.learned.seconds >= minLearning.Seconds() || m.assumed > 0 }

// isAssumed reports whether its need is assumed, because its own is not known.
func (m *member) isAssumed() bool { return m.assumed > 0 && m.learned.seconds < minLearning.Seconds() }

// need returns the learned rate, or the one that is assumed until it is known, in bit/s.
func (m *member) need() float64 {
	if m.isAssumed() {
		return m.assumed
	}
	return m.learned.rate()
}

// congested reports whether the reading of a connection is congestion for the set.
func (c *Control) congested(m *member, r Reading) bool {
	if m.weighed() && m.behind() && c.contested(m) {
		return true
	}
	slowFor := r.At - m.lastNormal
	if slowFor < minSlowTime && r.Events == 0 {
		return false
	}
	// A set that sends more than its learned rate may cause a queue of its own. That is
	// not congestion while no connection is behind, unless there are configured weights,
	// which must be held then, too.
	if m.weighed() || m.behind() && m.lasts < behindThreshold*m.need() {
		return true
	}
	if c.releasedWithBacklog {
		return false
	}
	attained, needs := c.rates(r.At)
	if slowFor >= minSlowTime { // while there is a queue, this is the available bandwidth
		attained = (c.ackedBits - m.had) / slowFor.Seconds()
	}
	return attained < enoughFactor*needs
}

// contested reports whether another connection than one with a configured weight has had backlog for long, too. Something then limits both: the limit of a group or
// a reservation of this host holds packets back without a loss, and its queue is there from the first packet.
func (c *Control) contested(m *member) bool {
	for _, other := range c.members {
		if other != m && other.weighed() && other.behind() {
			return true
		}
	}
	return false
}

// rates returns the rate and the learned rate of the set, in bit/s.
func (c *Control) rates(now time.Duration) (attained, needs float64) {
	// Thousands of connections may report congestion at the same time.
	if l := &c.recently; l.at == 0 || now < l.at || now-l.at > freshFor {
		*l = totals{at: now}
		for _, m := range c.members {
			if m.counts(now) {
				l.attained, l.needs = l.attained+m.rate, l.needs+m.need()
			}
		}
	}
	return c.recently.attained, c.recently.needs
}

func (c *Control) begin(at time.Duration) {
	c.controlling, c.releasedWithBacklog = true, false
	c.began, c.stepped, c.calm = at, at, at
	c.summary = summary{}
	c.sumClasses(at)
	needs, shares := 0.0, 0.0
	for _, m := range c.members {
		m.resetLead()
		m.booked, m.lost, m.cap, m.let = m.slow, false, Cap{}, 0
		if m.counts(at) {
			needs, shares = needs+m.need(), shares+m.share()
			c.summary.judge(m)
		}
	}
	if shares == 0 {
		shares = 1
	}
	c.scaleControl = newScaleControl(max(needs, 1)/shares, max(needs, 1))
	c.startFair(at)
	c.fallback.begin(at)
}

// counts reports whether a connection is in the averages of the set.
func (m *member) counts(now time.Duration) bool {
	return m.known() && now-m.newest.At < max(idleAfter, 4*m.rtt)
}

// behind reports whether it has had backlog for longer than caps delay a burst.
func (m *member) behind() bool { return m.backlogTime > minLearning }

// waiting reports whether a connection has backlog.
func (m *member) waiting(now time.Duration) bool { return m.counts(now) && m.backlogFraction > 0.5 }

// Caps returns the current caps of the set's connections, or none if it is not
// controlled.
func (c *Control) Caps(now time.Duration) iter.Seq2[ID, Cap] {
	if !c.controlling {
		c.refresh(now)
		return noCaps
	}
	c.summary = c.look(now)
	c.growFair(now)
	if took := now - c.stepped; took >= max(c.summary.rtt, minStep) {
		c.stepped = now
		if took > stallTime { // the time of a stall shows nothing
			took, c.calm = stallTime, now
		}
		c.scaleControl.step(c.summary, took)
		c.hold(c.summary, now)
		if c.done(c.summary, now) || c.fallback.starves(c.summary, &c.scaleControl, now) {
			c.controlling = false
			return noCaps
		}
	}
	return c.caps
}

func noCaps(func(ID, Cap) bool) {}

func (c *Control) caps(yield func(ID, Cap) bool) {
	for _, m := range c.members {
		if !m.known() {
			continue
		}
		m.cap = c.scaleControl.cap(m, c.summary)
		if !yield(m.id, m.cap) {
			return
		}
	}
}

// refresh clears releasedWithBacklog when no backlog remains: the next congestion is a new
// one.
func (c *Control) refresh(now time.Duration) {
	if !c.releasedWithBacklog {
		return
	}
	for _, m := range c.members {
		if m.counts(now) && m.behind() {
			return
		}
	}
	c.releasedWithBacklog = false
}

// done reports whether control can end. For a while no connection was behind, or would be
// without control, and losses were due to a rate above the learned rate.
func (c *Control) done(s summary, now time.Duration) bool {
	lost := s.lost > 0 && s.carried < enoughFactor*s.needs
	stands := s.members > 0 && s.behind == 0 && c.scaleControl.standing.before > s.budget
	if lost || stands || !s.enough() {
		c.calm = now
	}
	if over := s.behind > 0 && !s.weighed && c.scaleControl.clock-c.scaleControl.sign > noSign; !over && now-c.calm < s.patience() {
		return false
	}
	c.releasedWithBacklog = s.behind > 0
	return true
}

// undisturbed reports whether no connection is behind and there was no recent loss. A
// remaining queue is then the path's, which has become longer.
func (c *Control) undisturbed() bool {
	lately := c.scaleControl.lostAt != 0 && c.scaleControl.clock-c.scaleControl.lostAt <= longAverage
	return c.summary.behind == 0 && !lately
}
