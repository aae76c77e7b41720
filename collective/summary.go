package collective

import "time"

// summary is a summary of the connections of a set that count.
type summary struct {
	members, waiting   int
	rtt, queue, budget time.Duration // means weighted by share
	// bend is the factor for the pace at the current queue.
	bend     float64
	attained float64 // bit/s of those with backlog, or of all if none has any
	lasts    float64 // the same, averaged over longAverage
	shares   float64 // total share of those
	lost     int     // connections with loss since the last step
	// rate, carried and needs are totals of all connections, in bit/s; carried is averaged over longAverage.
	rate, carried, needs float64
	// begun is set if some have backlog, but not for long. busy is the number of those
	// that recently had backlog for longer than a burst.
	begun bool
	busy  int
	// behind is the number of connections with backlog for long. maxNeed is the maximum of
	// their learned rates, kept the total of their rates. short is set if one of them
	// gets less than its learned rate, or has a configured weight.
	behind        int
	maxNeed, kept float64
	short         bool
	weighed       bool // there are configured weights
}

// look summarizes the members that count.
func (c *Control) look(now time.Duration) (s summary) {
	s.bend = 1
	c.sumClasses(now)
	var shares, queue, rtt, base float64
	for _, m := range c.members {
		if !m.counts(now) {
			continue
		}
		s.members++
		s.weighed = s.weighed || m.weighed()
		share := m.share()
		shares += share
		queue += share * max(m.rtt-m.base, 0).Seconds()
		rtt += share * m.rtt.Seconds()
		base += share * m.base.Seconds()
		if m.backlogFraction > 0.5 {
			s.waiting++
			s.attained += m.rate
			s.lasts += m.lasts
			s.shares += share
			s.begun = s.begun || !m.behind()
		}
		if m.lost {
			s.lost++
		}
		if now-m.busy < minLearning {
			s.busy++
		}
		s.rate += m.rate
		s.carried, s.needs = s.carried+m.lasts, s.needs+m.need()
		s.judge(m)
	}
	if shares == 0 {
		return s
	}
	if s.waiting == 0 {
		s.attained, s.shares = s.rate, shares
	}
	mean := func(v float64) time.Duration { return time.Duration(v / shares * 1e9) }
	s.queue, s.rtt = mean(queue), mean(rtt)
	s.budget = min(max(time.Duration(budgetPart*float64(mean(base))), minBudget), maxBudget)
	trip := max(mean(base), minBendRTT)
	s.bend = max((trip+s.budget).Seconds()/(trip+s.queue).Seconds(), minBend)
	return s
}

// judge adds a connection to behind, kept, most and short.
func (s *summary) judge(m *member) {
	if !m.behind() {
		return
	}
	need := m.need()
	s.behind++
	s.kept, s.maxNeed = s.kept+m.lasts, max(s.maxNeed, need)
	s.short = s.short || m.weighed() || m.lasts < behindThreshold*need
}

// enough reports whether all connections with backlog for long get their learned rate,
// and would if TCP divided their total equally.
func (s *summary) enough() bool {
	return s.behind == 0 || !s.short && s.kept/float64(s.behind) >= behindThreshold*s.maxNeed
}

// patience returns how long no connection may be behind before control ends. A connection
// whose backlog has just begun may be behind, which shows only later if it pauses for a
// moment: five greedy BBRs did so together, were released, and were 33 % off. patience is
// therefore longer while all have recently had backlog for longer than a burst.
func (s *summary) patience() time.Duration {
	switch {
	case s.busy > 0 && s.busy == s.members:
		return calmDuration + 2*minLearning
	case s.begun:
		return calmDuration + minLearning + shortAverage
	}
	return calmDuration
}

// others is the rate of the connections that have no backlog while some have.
func (s summary) others() float64 { return max(s.rate-s.attained, 0) }
