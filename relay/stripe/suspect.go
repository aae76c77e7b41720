package stripe

import (
	"math"
	"slices"
	"time"
)

const (
	// minSuspicion is the shortest time without an acknowledgement after which a stream is suspect.
	minSuspicion = 300 * time.Millisecond
	// maxPatience is by how much longer a stream of a path that goes on may make no progress. The other streams may carry
	// little, and say little of the path's rate.
	maxPatience = 10
	// rateTime is the time over which the rate of a path is smoothed.
	rateTime = time.Second
)

// rate is at what rate what was sent on a path is acknowledged.
type rate struct {
	acked int     // bytes since the last Tick
	bytes float64 // per second, smoothed
}

func (s *Session) rateOf(path string) *rate {
	r := s.rates[path]
	if r == nil {
		r = &rate{}
		s.rates[path] = r
	}
	return r
}

// Tick finds streams that make no progress. The caller calls it at least every 100 ms unless the session is quiet.
//
// A stream is suspect if nothing was acknowledged for three round-trip times. On a path that has become slow, that
// says little: all that is on the way must leave the queue first, and what is sent again waits behind it. So if other
// streams of the path go on, it is not suspect before as much time as the path needs for what is on the way. And it is
// only suspect if another stream is better.
func (s *Session) Tick(now time.Duration) {
	took := (now - s.ticked).Seconds()
	s.ticked = now
	for _, r := range s.rates {
		if took > 0 {
			r.bytes += (float64(r.acked)/took - r.bytes) * (1 - math.Exp(-took/rateTime.Seconds()))
			r.acked = 0
		}
	}
	for _, st := range s.order {
		if st.suspect || !st.waits() || now-st.progress < st.patience() {
			continue
		}
		goesOn := slices.ContainsFunc(s.order, func(o *stream) bool { return o.path == st.path && now-o.progress < st.patience() })
		needs := time.Duration(float64(s.onTheWay(st.path)) / max(s.rateOf(st.path).bytes, minRate) * float64(time.Second))
		if goesOn && now-st.progress < min(needs, maxPatience*st.patience()) {
			continue
		}
		better := func(o *stream) bool {
			return o != st && !o.suspect && !o.retired && (!o.waits() || now-o.progress < o.patience())
		}
		if slices.ContainsFunc(s.order, better) {
			st.suspect = true
			s.resend(st)
		}
	}
}

// patience is after what time without progress a stream may be suspect.
func (st *stream) patience() time.Duration { return max(3*st.estimate.RTT, minSuspicion) }

// waits reports whether something was sent that must be acknowledged.
func (st *stream) waits() bool { return st.awaited > 0 }

// mustBeAcknowledged is false for frames that were sent again, too, whose Kind is 0.
func (f Frame) mustBeAcknowledged() bool { return f.Kind != Ack && f.Kind != 0 }

// Waits reports whether something was sent on a stream that was not acknowledged.
func (s *Session) Waits(number uint32) bool {
	st := s.streams[number]
	return st != nil && st.waits()
}

// onTheWay returns how many bytes were sent on a path and not acknowledged.
func (s *Session) onTheWay(path string) (bytes int) {
	for _, st := range s.order {
		if st.path == path {
			for _, f := range st.sent {
				if f.Kind != 0 { // else it was sent again
					bytes += len(f.Payload)
				}
			}
		}
	}
	return bytes
}

// Quiet reports whether nothing waits to be acknowledged and no stream is suspect, so that Tick has nothing to do.
// Acknowledgements are not acknowledged by themselves.
func (s *Session) Quiet() bool {
	return !slices.ContainsFunc(s.order, func(st *stream) bool { return st.suspect || st.waits() })
}
