package collective

import "time"

// Ours, of how the shares are held.
const (
	// leadGain is by what part of its share a connection's cap is lowered for each second
	// that it is ahead.
	leadGain = 1.0
	// mostLead, in seconds, bounds what is made up for.
	mostLead = 1.0
	// leastDue and mostDue bound the correction.
	leastDue, mostDue = 0.25, 4.0
)

// hold books by how much each waiting connection is ahead of its share of what all of
// them got, in seconds of that share. All together are never ahead.
func (c *Control) hold(s sight, now, took time.Duration) {
	mean := 0.0
	for _, m := range c.members {
		m.lost = false
		if !m.waiting(now) || s.attained == 0 {
			m.lead = 0
			continue
		}
		fair := s.attained / s.shares * m.share()
		m.lead += took.Seconds() * (m.rate/fair - 1)
		mean += m.lead * m.share() / s.shares
	}
	for _, m := range c.members {
		if m.lead != 0 {
			m.lead = min(max(m.lead-mean, -mostLead), mostLead)
		}
	}
}

// due is what a connection's share is multiplied by, so that it makes up for the past.
func (m *member) due() float64 { return min(max(1-leadGain*m.lead, leastDue), mostDue) }
