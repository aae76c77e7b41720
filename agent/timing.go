package agent

import "time"

const (
	// settleDelay delays the device listing after an event. A program that creates a device usually
	// renames it and sets its MTU right after, and a service's cgroup is removed just before it is
	// created again. One listing covers all these events, and a storm of events: see Agent.settle.
	settleDelay = 20 * time.Millisecond
	// listLoadDivisor and maxSettleDelay bound the load of a storm of events: device listings take at
	// most the fraction 1/listLoadDivisor of the time, and a device waits for one at most
	// maxSettleDelay.
	listLoadDivisor = 5
	maxSettleDelay  = 500 * time.Millisecond
	// checkBatchSize is the number of devices that are checked before pending events are received. Ten
	// devices take 0.1 s.
	checkBatchSize = 10
	// resyncInterval is the period of the check that finds changes without events. A check of 4,000
	// groups takes some tens of milliseconds.
	resyncInterval = time.Minute
	// minBackoff and maxBackoff bound the delay between retries. The first retry is quick for a
	// device that is still being set up. Later ones back off, so that the agent does not compete
	// with another program that changes the same device.
	minBackoff = time.Second
	maxBackoff = time.Minute
	// pendingInterval is the delay between checks while a change awaits confirmation, which takes
	// about a minute.
	pendingInterval = 2 * time.Second
)

// settle returns the delay between an event and the device listing, which covers all events up to
// then. 200 new devices cause 2,000 events, and listing them takes 15 ms.
func (a *Agent) settle() time.Duration {
	return min(max(settleDelay, listLoadDivisor*a.listDuration), maxSettleDelay)
}

// schedule schedules the next check of a device.
type schedule struct {
	due       time.Time
	notBefore time.Time // a removal event does not move the check before this time
	hooked    time.Time // time of the last check that a change of hooks caused
	failures  int       // consecutive failures and repairs
	last      time.Time // time of the last failure or repair
}

// changed schedules a check at once and resets the backoff: the device or its desired state is new.
func (t *schedule) changed(now time.Time) { *t = schedule{due: now} }

// suspect schedules a check after another program removed traffic control.
func (t *schedule) suspect(now time.Time) {
	at := later(now.Add(settleDelay), t.notBefore)
	if at.Before(t.due) {
		t.due = at
	}
}

// hooks schedules a check after nftables chains or flowtables were created or removed, because
// packets may now bypass the classifier. The delay is never longer than minBackoff, however often
// hooks change: reloading a firewall is not a conflict with another program.
func (t *schedule) hooks(now time.Time) {
	at := later(now.Add(settleDelay), t.hooked.Add(minBackoff))
	if !t.last.IsZero() {
		at = later(at, t.last.Add(minBackoff))
	}
	if at.Before(t.due) {
		t.due, t.hooked = at, at
	}
}

// fine records that the desired state is in force.
func (t *schedule) fine(now time.Time) {
	if now.Sub(t.last) > maxBackoff {
		t.failures = 0
	}
	t.due = now.Add(resyncInterval)
}

// postpone postpones the check of a device that must not be changed now.
func (t *schedule) postpone(now time.Time) { t.due = now.Add(pendingInterval) }

// repaired records the repair of drift.
func (t *schedule) repaired(now time.Time) {
	t.fine(now)
	t.notBefore = now.Add(t.pause(now))
}

// failed schedules a retry after the backoff, or sooner after another program removed traffic
// control that may have caused the failure.
func (t *schedule) failed(now time.Time) {
	t.due = now.Add(t.pause(now))
	t.notBefore = now.Add(minBackoff)
}

func (t *schedule) pause(now time.Time) time.Duration {
	p := maxBackoff
	if t.failures < 6 {
		p = min(minBackoff<<t.failures, maxBackoff)
	}
	t.failures, t.last = t.failures+1, now
	return p
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// untilNextMultiple returns the time until the clock reaches the next whole multiple of every. A timer
// that fires slightly early does not fire twice for the same multiple.
func untilNextMultiple(now time.Time, every time.Duration) time.Duration {
	if every <= 0 {
		return 0
	}
	until := now.Truncate(every).Add(every).Sub(now)
	if until < every/4 {
		until += every
	}
	return until
}
