package collective

import "time"

// class is connections of a Control that have a weight in common: together they carry in proportion of it, and it is divided among those that have backlog.
type class struct {
	weight float64
	// own is the sum of the shares that its connections with backlog have among themselves, or of all if none has any.
	own float64
}

// classShare is the share of a class with the weight 1, chosen so that it is like a learned rate.
const classShare = 1e6

// SetClass puts a connection into a class. What classes carry under congestion is in proportion of their weights, in any unit; the connections of a class divide its part
// by their own shares. Either all connections of a Control have a class, or none.
func (c *Control) SetClass(id ID, name string, weight float64) {
	if c.classes == nil {
		c.classes = map[string]*class{}
	}
	of := c.classes[name]
	if of == nil {
		of = &class{}
		c.classes[name] = of
	}
	of.weight = weight
	c.member(id).class = of
}

// sumClasses adds up the shares in each class.
func (c *Control) sumClasses(now time.Duration) {
	if len(c.classes) == 0 {
		return
	}
	waiting := map[*class]bool{}
	for _, m := range c.members {
		if m.waiting(now) {
			waiting[m.class] = true
		}
	}
	for _, of := range c.classes {
		of.own = 0
	}
	for _, m := range c.members {
		if m.class != nil && m.counts(now) && (m.waiting(now) || !waiting[m.class]) {
			m.class.own += m.ownShare()
		}
	}
}

// share returns the unnormalized share of a connection in the set.
func (m *member) share() float64 {
	if m.class == nil {
		return m.ownShare()
	}
	own := m.ownShare()
	return classShare * m.class.weight * own / max(m.class.own, own)
}

// ownShare is its share among the connections of its class.
func (m *member) ownShare() float64 {
	if m.weight > 0 {
		return m.weight
	}
	return max(m.need(), 1)
}

// weighed reports whether its part follows from configured weights, which are held whenever there is congestion.
func (m *member) weighed() bool { return m.weight > 0 || m.class != nil }
