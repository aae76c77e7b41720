package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// Constants of regrowth, chosen for Headgate.
const (
	// fallen is below which part of its former rate a stream must be.
	fallen = 0.5
	// minCalm is the least time for which a stream must have been calm: two looks.
	minCalm = 2 * tickInterval
	// startTime is for how many round-trip times regrowControl is used: ten times the rate takes three, and the queue that
	// forms meanwhile must drain before a congestion control that fills queues continues with its window.
	startTime = 12
	// betweenStarts is how many round-trip times pass before a stream is restarted again, and minBetweenStarts the least
	// time.
	betweenStarts, minBetweenStarts = 30, 5 * time.Second
)

// regrowControl is the congestion control that finds a higher rate fastest: BBR's start multiplies the rate by 2.9 in
// each round-trip time until the rate does not grow (bbr_high_gain in net/ipv4/tcp_bbr.c).
const regrowControl = "bbr"

// regrowth finds streams that have stayed slow after their path became fast again, so that they are restarted. After some time at
// a tenth of the rate, CUBIC takes cbrt(0.75 Wmax) seconds to reach Wmax, its window in segments at the last loss (RFC 9438,
// section 4.2), and BBR tries a quarter more in every eighth round-trip time: over 300 ms, a path of 100 Mbit/s was used again
// after 4 to 6 s.
// A stream is restarted if it always has something to send, its path's queue is empty, nothing is lost, and it delivers less
// than half of what it did before. link.mu protects it.
type regrowth struct {
	rate float64 // bytes per second, smoothed
	best float64 // the highest rate; a restart halves it, so that a path that stays slow ends the restarts
	lost uint64
	calm time.Time // since when; zero is not
	next time.Time // not restarted before
	// until is how long regrowControl is used; zero is not. former is the congestion control before it.
	until  time.Time
	former string
}

// look is called at each tick with what the kernel knows of a stream. It reports whether the stream must be restarted with
// regrowControl, or must have the former congestion control again.
func (g *regrowth) look(now time.Time, i *unix.TCPInfo) (start, end bool) {
	rate := float64(i.Delivery_rate)
	g.rate += (rate - g.rate) / 8
	g.best = max(g.best, g.rate)
	if !g.until.IsZero() {
		if now.Before(g.until) {
			return false, false
		}
		g.until, g.calm = time.Time{}, time.Time{}
		return false, true
	}
	rtt := time.Duration(i.Rtt) * time.Microsecond
	least := minRTT(i)
	empty := least > 0 && rtt-least < max(minFullRTT, time.Duration((fullRTT-1)*float64(least)))
	if i.Notsent_bytes == 0 || i.Bytes_retrans != g.lost || !empty {
		g.lost, g.calm = i.Bytes_retrans, time.Time{}
		return false, false
	}
	if g.calm.IsZero() {
		g.calm = now
	}
	if now.Before(g.next) || now.Sub(g.calm) < max(rtt/2, minCalm) || rate >= fallen*g.best {
		return false, false
	}
	g.best /= 2
	g.next = now.Add(max(betweenStarts*rtt, minBetweenStarts))
	g.until = now.Add(startTime * rtt)
	return true, false
}

// regrow restarts the stream, of which the kernel knows i, if it has stayed slow. l.mu must be held.
func (st *stream) regrow(now time.Time, i *unix.TCPInfo) {
	if i == nil || st.idling.never || st.idling.parked {
		return
	}
	g := &st.regrowth
	start, end := g.look(now, i)
	if end && g.former != regrowControl {
		_ = setCongestion(st.raw, g.former) // it was in use before
	}
	if !start {
		return
	}
	if g.former = congestionOf(st.raw); g.former == regrowControl {
		_ = setCongestion(st.raw, congestionControls[0]) // selecting the one in use does not restart it
	}
	if setCongestion(st.raw, regrowControl) != nil {
		st.idling.never = true
	}
}

// selected tells that a congestion control was selected now; only is true if the stream must have no other.
func (st *stream) selected(only bool) {
	st.idling.selected(only)
	st.regrowth.until = time.Time{}
}
