package agent

import "time"

const (
	// settle: whoever makes a device renames it and sets its MTU right after, and a
	// service's cgroup is removed just before it is made again. One look for all,
	// and for a storm of events: see Agent.settle.
	settle = 20 * time.Millisecond
	// surveyPart: what a survey takes is this part of the time in a storm of events, and
	// lastSettle is as long as a device waits for that.
	surveyPart = 5
	lastSettle = 500 * time.Millisecond
	// atOnce is how many devices are looked at before what has happened meanwhile is taken in: as
	// many take a tenth of a second.
	atOnce = 10
	// lookEvery finds what no event tells of. A look at 4,000 groups takes some
	// tens of milliseconds.
	lookEvery = time.Minute
	// firstPause and lastPause bound what is tried again: a device that is just
	// coming deserves a quick second try, one that another program also wants does
	// not deserve a fight.
	firstPause = time.Second
	lastPause  = time.Minute
	// pendingPause: a change that waits for confirmation takes a minute or so.
	pendingPause = 2 * time.Second
)

// settle is how long after an event there is a survey, which takes in all that have come until
// then. Two hundred devices are 2,000 events, and to list them takes 15 ms.
func (a *Agent) settle() time.Duration {
	return min(max(settle, surveyPart*a.surveyTook), lastSettle)
}

// timing says when a device is looked at next.
type timing struct {
	due       time.Time
	notBefore time.Time // a suspicion brings the look no nearer than this
	hooked    time.Time // hooks brought about a look then
	troubles  int       // failures and repairs in a row
	last      time.Time // the last of them
}

// changed: there is something new about the device, so what failed may succeed.
func (t *timing) changed(now time.Time) { *t = timing{due: now} }

// suspect: someone removed traffic control.
func (t *timing) suspect(now time.Time) {
	at := later(now.Add(settle), t.notBefore)
	if at.Before(t.due) {
		t.due = at
	}
}

// hooks: chains or flowtables came or went. What they are to see must not go past them
// for long, so that this waits for no more than the first pause, however often it
// happens: firewalls are reloaded, and that is no fight.
func (t *timing) hooks(now time.Time) {
	at := later(now.Add(settle), t.hooked.Add(firstPause))
	if !t.last.IsZero() {
		at = later(at, t.last.Add(firstPause))
	}
	if at.Before(t.due) {
		t.due, t.hooked = at, at
	}
}

// fine: all is as it should be.
func (t *timing) fine(now time.Time) {
	if now.Sub(t.last) > lastPause {
		t.troubles = 0
	}
	t.due = now.Add(lookEvery)
}

// waits: it is not the time to touch the device.
func (t *timing) waits(now time.Time) { t.due = now.Add(pendingPause) }

// repaired: another program had changed what is ours.
func (t *timing) repaired(now time.Time) {
	t.fine(now)
	t.notBefore = now.Add(t.pause(now))
}

// failed: it is tried again after a while, or soon after somebody removed what
// may have been in the way.
func (t *timing) failed(now time.Time) {
	t.due = now.Add(t.pause(now))
	t.notBefore = now.Add(firstPause)
}

func (t *timing) pause(now time.Time) time.Duration {
	p := lastPause
	if t.troubles < 6 {
		p = min(firstPause<<t.troubles, lastPause)
	}
	t.troubles, t.last = t.troubles+1, now
	return p
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// untilWhole is how long it is until a whole multiple of a time on the clock. A timer that fires a
// little early does not fire again for the same.
func untilWhole(now time.Time, every time.Duration) time.Duration {
	if every <= 0 {
		return 0
	}
	until := now.Truncate(every).Add(every).Sub(now)
	if until < every/4 {
		until += every
	}
	return until
}
