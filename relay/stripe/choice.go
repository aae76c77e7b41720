package stripe

import "slices"

// better is by how much more than the first alternative another must deliver to be chosen, chosen for Headgate. The
// first is the one that shares a link best with other traffic.
const better = 0.10

// Choice finds the congestion control of a path by what each alternative delivers. It measures the first, each
// other one, and the first again, because an estimate that grows with time, as a window does, would favour the later
// ones. It measures again after the goodput has changed.
type Choice struct {
	names    []string
	at       int // index of the alternative in use
	measured []float64
	settled  bool
	held     float64 // goodput since it settled, smoothed
	epochs   int     // since it settled
}

// NewChoice returns a choice between alternatives, the preferred one first.
func NewChoice(names ...string) *Choice {
	return &Choice{names: slices.Clone(names), settled: len(names) < 2}
}

// Name returns the alternative to use, "" without any.
func (c *Choice) Name() string {
	if len(c.names) == 0 {
		return ""
	}
	return c.names[c.at]
}

// Settled reports whether the choice is made.
func (c *Choice) Settled() bool { return c.settled }

// Remove removes an alternative that cannot be used.
func (c *Choice) Remove(name string) {
	c.names = slices.DeleteFunc(c.names, func(n string) bool { return n == name })
	c.at, c.measured, c.settled = 0, nil, len(c.names) < 2
}

// Observe takes an epoch.
func (c *Choice) Observe(m Measured) {
	if !m.Busy || len(c.names) < 2 {
		return
	}
	if c.settled {
		c.hold(m)
		return
	}
	c.measured = append(c.measured, m.Goodput)
	switch n := len(c.measured); {
	case c.at == 0 && m.Full: // the first fills the path
		c.settle()
	case n < len(c.names):
		c.at = n
	case n == len(c.names):
		c.at = 0
	default:
		c.choose()
	}
}

// choose chooses the alternative that delivered most.
func (c *Choice) choose() {
	first := max(c.measured[0], c.measured[len(c.names)])
	c.at = 0
	for n, most := 1, first*(1+better); n < len(c.names); n++ {
		if c.measured[n] > most {
			c.at, most = n, c.measured[n]
		}
	}
	c.settle()
}

// settle keeps the alternative in use.
func (c *Choice) settle() { c.measured, c.settled, c.held, c.epochs = nil, true, 0, 0 }

// hold compares again after the goodput has changed, as Tuner does.
func (c *Choice) hold(m Measured) {
	if c.held == 0 {
		c.held = m.Goodput
	}
	changed := m.Goodput < c.held*(1-change)
	c.held += (m.Goodput - c.held) / 4
	again := c.epochs+1 >= minHold && changed || c.epochs+1 >= maxHold
	if c.epochs++; again && (c.at != 0 || !m.Full) {
		c.settled, c.at = false, 0
	}
}
