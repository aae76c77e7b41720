package collective

import "time"

// Constants of the accounting of shares, chosen by Headgate.
const (
	// leadGain is the fraction of its share by which the cap of a connection is lowered
	// for each second of its share that it is ahead.
	leadGain = 0.5
	// maxLead, in seconds of its share, bounds the lead that is compensated.
	maxLead = 3.0
	// minCorrection and maxCorrection bound the correction.
	minCorrection, maxCorrection = 0.5, 2.5
	// stalled: a connection with backlog but without a reading for this time waits for
	// its retransmission timer. After that the others continue without it.
	stalled = 3 * time.Second
	// onset is the time after which caps have caused a backlog.
	onset = time.Second
)

// hold updates, for each connection with backlog, the lead over its share of the bits of
// all, and sets due. The leads of all total zero. The account is in bytes, because a rate
// that is read once per round trip is not reported while a connection waits for its
// timer: the connection with the fewest packets in flight waits most, and was 7 % below
// its share.
func (c *Control) hold(s summary, now time.Duration) {
	var got, ahead, shares float64
	for _, m := range c.members {
		m.lost = false
		if !c.holds(m, now) {
			m.resetLead()
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
		fair := s.lasts * m.share() / s.shares // one second of its share
		m.lead += m.booked - (got+ahead)*m.share()/shares
		m.lead = min(max(m.lead, -maxLead*fair), maxLead*fair)
		m.booked, m.due = 0, min(max(1-leadGain*m.lead/fair, minCorrection), maxCorrection)
		if m.waiting(now) {
			due += m.due * m.share() / s.shares
		}
	}
	for _, m := range c.members {
		if c.holds(m, now) { // the others use the share of a connection that waits for its timer
			m.due /= due
		}
	}
}

// holds reports whether a connection is held to its share: with backlog, and for all
// connections at the begin of control, when backlogs are not known yet. The bits since
// its round trip rose are booked then.
func (c *Control) holds(m *member, now time.Duration) bool {
	return m.contends(now) || now-c.began < onset && m.counts(now)
}

// book accounts for acknowledged bits. Bits beyond the cap were sent before there was a
// cap, and are acknowledged only now because an earlier packet was lost.
func (m *member) book(bits float64, gap time.Duration) {
	if m.cap.Rate > 0 {
		window := float64(m.cap.Window) * 8
		m.let += float64(m.cap.Rate) * gap.Seconds()
		bits = min(bits, m.let+window)
		m.let = min(max(m.let-bits, 0), window)
	}
	m.booked += bits
}

// resetLead clears the lead of a connection.
func (m *member) resetLead() { m.lead, m.booked, m.due = 0, 0, 1 }

// contends reports whether a connection has backlog, also while it waits for its timer.
func (m *member) contends(now time.Duration) bool {
	return m.waiting(now) || m.known() && m.newest.HasBacklog() && now-m.newest.At < stalled
}
