package collective

import (
	"time"

	"headgate.dev/headgate/unit"
)

// Constants of suspending control of a set, chosen by Headgate.
const (
	// A set that carries less than starves of its fair share for starvesFor, with few losses and windows of more than minWindow packets, is suspended. The share stops to grow at maxUnused times what the set has in
	// flight, so that the part is about a half while connections are held back without need: those of a set whose others have another, slower path. With many
	// losses, or with less, connections wait for their timers, and the part is as low in the paper's network with 8 Mbit/s of FTP.
	starves    = 0.6
	starvesFor = 5 * time.Second
	// It is not controlled for minPause then, and for twice as long each time, up to maxPause. Without another time for forgetPause it begins again with minPause.
	minPause, maxPause = 10 * time.Second, 10 * time.Minute
	forgetPause        = 10 * time.Minute
)

// Suspension is that control of a set was suspended because control cost it bandwidth.
type Suspension struct {
	// At is when it was suspended, Until when it may be controlled again.
	At, Until time.Duration
	// Carried is what it carried, Fair what as many ordinary connections would have.
	Carried, Fair unit.Rate
}

// fallback is the state of suspending control of a set.
type fallback struct {
	enough time.Duration // when the set last had enough
	pause  time.Duration
	last   Suspension
}

// Suspended returns how the set was suspended the last time; the zero Suspension is never.
func (c *Control) Suspended() Suspension { return c.fallback.last }

// begin begins to watch.
func (f *fallback) begin(now time.Duration) {
	f.enough = now
	if now-f.last.Until > forgetPause {
		f.pause = 0
	}
}

// held reports whether the set may not be controlled yet.
func (f *fallback) held(now time.Duration) bool { return now < f.last.Until }

// starves reports whether the set is to be suspended.
func (f *fallback) starves(s summary, l *scaleControl, now time.Duration) bool {
	fair := l.fair.rate(s.rtt)
	if !l.rivals || l.held(s) || l.lossy > fewLosses || l.fair.window <= minWindow*float64(s.waiting) || s.lasts >= starves*fair {
		f.enough = now
	}
	if now-f.enough < starvesFor && !l.probe.carried(s) {
		return false
	}
	f.pause = min(max(2*f.pause, minPause), maxPause)
	f.last = Suspension{At: now, Until: now + f.pause, Carried: unit.Rate(s.lasts), Fair: unit.Rate(fair)}
	if l.probe.carried(s) {
		f.last.Carried, f.last.Fair = unit.Rate(l.probe.before), unit.Rate(s.attained)
	}
	return true
}

// A limit of this host, and a connection whose own path is slow, both hold a set back without a loss and without a queue. With a higher pace a set has no more behind the
// former, and more behind the latter.
const (
	// probePace is that of a probe, over probeFor or probeRounds round trips; it has shown more if the set gets probeGain times what it got.
	probePace   = 1.5
	probeGain   = 1.1
	probeFor    = time.Second
	probeRounds = 6
	// The next probe is after minProbe, and twice as long after each, up to maxProbe.
	minProbe, maxProbe = 5 * time.Second, time.Minute
)

// paceProbe is the probes of a set that is held back.
type paceProbe struct {
	began, ended, wait time.Duration // by the clock of the steps
	running, done      bool          // done: a probe has just ended
	before             float64       // what the set got, in bit/s
}

// step moves on while the set is held back.
func (p *paceProbe) step(now time.Duration, s summary, held bool) {
	p.done = false
	switch {
	case !held:
		p.running, p.ended = false, now
	case p.running && now-p.began > max(probeFor, probeRounds*s.rtt):
		p.running, p.done, p.ended = false, true, now
		p.wait = min(2*p.wait, maxProbe)
	case !p.running && now-p.ended > max(p.wait, minProbe):
		p.running, p.began, p.before = true, now, s.lasts
		p.wait = max(p.wait, minProbe)
	}
}

// carried reports whether a probe has just shown that the set gets more with a higher pace.
func (p *paceProbe) carried(s summary) bool { return p.done && s.attained > probeGain*p.before }
