package stripe

import "slices"

// Constants of Choice, chosen for Headgate.
const (
	// better is by how much more than the first alternative another must deliver to be chosen. The first is the one that
	// shares a link best with other traffic.
	better = 0.10
	// behind is for how many epochs the alternative in use must deliver less than another one did, unless it is half.
	behind = 2
)

// Choice finds the congestion control of a path by what each alternative delivers. It measures the first, each
// other one, and the first again, because an estimate that grows with time, as a window does, would favour the later
// ones. It measures again after the goodput has changed. An epoch flatters an alternative that begins with the window of
// another: when the chosen one falls behind what another has delivered, that one is used.
type Choice struct {
	names    []string
	at       int // index of the alternative in use
	measured []float64
	settled  bool
	untested bool      // it settled with the first without comparing, because that filled the path
	latest   []float64 // goodput of each alternative when it was last in use, smoothed; 0 is unknown
	late     int       // epochs in which the one in use was behind another
	epochs   int       // since it settled
}

// NewChoice returns a choice between alternatives, the preferred one first.
func NewChoice(names ...string) *Choice {
	c := &Choice{names: slices.Clone(names)}
	c.reset()
	return c
}

func (c *Choice) reset() {
	c.at, c.measured, c.latest, c.settled = 0, nil, make([]float64, len(c.names)), len(c.names) < 2
}

// Name returns the alternative to use, "" without any.
func (c *Choice) Name() string {
	if len(c.names) == 0 {
		return ""
	}
	return c.names[c.at]
}

// Settled reports whether the choice is made.
func (c *Choice) Settled() bool { return c.settled && c.late == 0 }

// Remove removes an alternative that cannot be used.
func (c *Choice) Remove(name string) {
	c.names = slices.DeleteFunc(c.names, func(n string) bool { return n == name })
	c.reset()
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
	c.latest[c.at] = m.Goodput
	switch n := len(c.measured); {
	case c.at == 0 && m.Full:
		c.settle()
		c.untested = n == 1
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
func (c *Choice) settle() {
	c.measured, c.settled, c.untested, c.late, c.epochs = nil, true, false, 0, 0
}

// hold compares again after the goodput has changed, as Tuner does, and uses another alternative after falling behind it.
func (c *Choice) hold(m Measured) {
	held := c.latest[c.at]
	changed := m.Goodput < held*(1-change)
	c.latest[c.at] += (m.Goodput - held) / 4
	c.epochs++
	again := c.epochs >= minHold && changed || c.epochs >= maxHold
	// A queue that slow start has filled stays so for some epochs, though what the losses leave cannot fill it again.
	again = again || c.untested && m.Goodput < held*(1-gain)
	if again && (c.at != 0 || !m.Full) {
		c.settled, c.late, c.at = false, 0, 0
		return
	}
	c.follow(m)
}

// follow uses the alternative that has delivered most if the one in use stays behind it.
func (c *Choice) follow(m Measured) {
	most := 0
	for n, g := range c.latest {
		if g > c.latest[most] {
			most = n
		}
	}
	if most == c.at || m.Goodput*(1+better) >= c.latest[most] {
		c.late = 0
		return
	}
	if c.late++; c.late == behind || m.Goodput < c.latest[most]/2 {
		c.latest[c.at], c.at = m.Goodput, most
		c.settle()
	}
}
