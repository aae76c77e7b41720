package collective

import "time"

// Ours, of how the shares are held.
const (
	// leadGain is by what part of its share a connection's cap is lowered for each second
	// of it that it is ahead.
	leadGain = 0.5
	// mostLead, in seconds of its share, bounds what is made up for.
	mostLead = 3.0
	// leastDue and mostDue bound the correction.
	leastDue, mostDue = 0.5, 2.5
	// stalled: a connection that had work waiting and shows nothing for so long waits for its
	// timer; in more time others go on without it.
	stalled = 3 * time.Second
	// onset is how long it takes until caps have made work wait.
	onset = time.Second
)

// hold books by how many bits each connection with work waiting is ahead of its share of what
// all of them got, and sets what is due to it: together they are never ahead. What is booked are
// bytes, as a rate that is read once a round trip is not told while a connection waits for its
// timer; who has the fewest packets in flight waits most, and came 7 % short of its share.
func (c *Control) hold(s sight, now time.Duration) {
	var got, ahead, shares float64
	for _, m := range c.members {
		m.lost = false
		if !c.holds(m, now) {
			m.even()
			continue
		}
		got, ahead, shares = got+m.booked, ahead+m.lead, shares+m.share()
	}
	if s.lasts == 0 {
		return
	}
	due := 0.0
	for _, m := range c.members {
		if !c.holds(m, now) {
			continue
		}
		fair := s.lasts * m.share() / s.shares // a second of its share
		m.lead += m.booked - (got+ahead)*m.share()/shares
		m.lead = min(max(m.lead, -mostLead*fair), mostLead*fair)
		m.booked, m.due = 0, min(max(1-leadGain*m.lead/fair, leastDue), mostDue)
		if m.waiting(now) {
			due += m.due * m.share() / s.shares
		}
	}
	for _, m := range c.members {
		if c.holds(m, now) { // while one waits for its timer the others send what it leaves
			m.due /= due
		}
	}
}

// holds tells whether a connection is held to its share: with work waiting, and as control begins,
// when nobody knows yet who has. What it got since its round trips rose is booked then.
func (c *Control) holds(m *member, now time.Duration) bool {
	return m.contends(now) || now-c.began < onset && m.counts(now)
}

// book takes down what was acknowledged. More than the cap let pass was sent before there was one, and
// is acknowledged only now as something before it was lost.
func (m *member) book(bits float64, gap time.Duration) {
	if m.cap.Rate > 0 {
		window := float64(m.cap.Window) * 8
		m.let += float64(m.cap.Rate) * gap.Seconds()
		bits = min(bits, m.let+window)
		m.let = min(max(m.let-bits, 0), window)
	}
	m.booked += bits
}

// even forgets what a connection is ahead, or behind.
func (m *member) even() { m.lead, m.booked, m.due = 0, 0, 1 }

// contends tells whether a connection has more to send than it may, also while it waits for its
// timer.
func (m *member) contends(now time.Duration) bool {
	return m.waiting(now) || m.known() && m.newest.Waits() && now-m.newest.At < stalled
}
