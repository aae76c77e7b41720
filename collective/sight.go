package collective

import "time"

// sight is what a set's connections that count show.
type sight struct {
	members, waiting   int
	rtt, queue, budget time.Duration // means, by share
	// bend is what the pace is multiplied by for the queue that is there.
	bend     float64
	attained float64 // bit/s of those that wait, or of all if none does
	lasts    float64 // of the same, over what goes on
	shares   float64 // of those
	lost     int     // how many lost something since the last step
	// carried and needs, in bit/s, are of all.
	carried, needs float64
	// begun: some have work waiting, and not for long; busy have lately had it for more than a burst.
	begun bool
	busy  int
	// behind are those that have had work waiting for long, most what one of them needs, kept what
	// they get; short: one of those gets less than it needs, or is to be held by its weight anyway.
	behind     int
	most, kept float64
	short      bool
}

// look sums up the members that count.
func (c *Control) look(now time.Duration) (s sight) {
	s.bend = 1
	var shares, all, queue, rtt, base float64
	for _, m := range c.members {
		if !m.counts(now) {
			continue
		}
		s.members++
		share := m.share()
		shares, all = shares+share, all+m.rate
		queue += share * max(m.rtt-m.base, 0).Seconds()
		rtt += share * m.rtt.Seconds()
		base += share * m.base.Seconds()
		if m.waits > 0.5 {
			s.waiting++
			s.attained += m.rate
			s.lasts += m.lasts
			s.shares += share
			s.begun = s.begun || !m.behind()
		}
		if m.lost {
			s.lost++
		}
		if now-m.busy < learnt {
			s.busy++
		}
		s.carried, s.needs = s.carried+m.lasts, s.needs+m.need.rate()
		s.judge(m)
	}
	if shares == 0 {
		return s
	}
	if s.waiting == 0 {
		s.attained, s.shares = all, shares
	}
	mean := func(v float64) time.Duration { return time.Duration(v / shares * 1e9) }
	s.queue, s.rtt = mean(queue), mean(rtt)
	s.budget = min(max(time.Duration(budgetPart*float64(mean(base))), leastBudget), mostBudget)
	trip := max(mean(base), bendLeast)
	s.bend = max((trip+s.budget).Seconds()/(trip+s.queue).Seconds(), mostBend)
	return s
}

// judge takes in whether a connection is behind.
func (s *sight) judge(m *member) {
	if !m.behind() {
		return
	}
	need := m.need.rate()
	s.behind++
	s.kept, s.most = s.kept+m.lasts, max(s.most, need)
	s.short = s.short || m.weight > 0 || m.lasts < short*need
}

// enough tells whether everybody who has had work waiting for long gets what it needs, and would
// if TCP divided what those get alike.
func (s *sight) enough() bool {
	return s.behind == 0 || !s.short && s.kept/float64(s.behind) >= short*s.most
}

// patience is for how long nobody must have come short. Whether who has only begun to wait does is
// known as soon as it is behind: later if it pauses for a moment, as five greedy BBRs did together, were
// let go, and 33 % off. So it is longer while all have lately had work waiting for more than a burst.
func (s *sight) patience() time.Duration {
	switch {
	case s.busy > 0 && s.busy == s.members:
		return calmFor + 2*learnt
	case s.begun:
		return calmFor + learnt + soon
	}
	return calmFor
}

// own tells whether the queue is no more than the set's own may be.
func (s sight) own() bool { return s.queue.Seconds() < others*s.budget.Seconds() }
