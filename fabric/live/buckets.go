package live

import (
	"fmt"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/program"
)

// Constants of buckets, chosen for Headgate: a host that starts sends some ten frames of which the controller learns.
const (
	rate, burst = 200, 400
)

// buckets bound the frames of each port and class that the controller looks at, in frames per second, so that one port slows no
// other.
type buckets map[fabric.PortID]*portBuckets

// portBuckets are those of a port.
type portBuckets struct {
	classes [program.Classes]bucket
	floods  bucket // frames that go to all ports of hosts (floods.go)
}

type bucket struct {
	tokens float64
	at     time.Time
	noted  time.Time // the last complaint
	// dropped counts the frames that were dropped since the time began.
	dropped int
	began   time.Time
	// quiet is until when the switch sends nothing of the port.
	quiet time.Time
}

func (b buckets) of(p fabric.PortID, now time.Time) *portBuckets {
	all := b[p]
	if all == nil {
		all = &portBuckets{floods: bucket{tokens: floodBurst, at: now}}
		for c := range all.classes {
			all.classes[c] = bucket{tokens: burst, at: now}
		}
		b[p] = all
	}
	return all
}

// fill adds the tokens of the time since the last call.
func (b *bucket) fill(rate, burst float64, now time.Time) {
	b.tokens = min(burst, b.tokens+rate*now.Sub(b.at).Seconds())
	b.at = now
}

// take reports whether a frame may be looked at.
func (b *bucket) take(now time.Time) bool {
	b.fill(rate, burst, now)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// drop counts a frame that was dropped, and reports whether the port has exceeded its rate by as much again for a second, or by as much in less
// as in two: of 20,000 frames per second the switch takes until then more than it can look up, and frames of other ports wait.
func (b *bucket) drop(now time.Time) bool {
	if now.Sub(b.began) >= 2*time.Second {
		b.began, b.dropped = now, 0
	}
	b.dropped++
	if now.Sub(b.began) < time.Second && b.dropped <= 2*rate {
		return false
	}
	exceeds := b.dropped > rate
	b.began, b.dropped = now, 0
	return exceeds
}

// quietTime is for how long a switch sends nothing of a port that has exceeded its rate for a second: of 20,000 frames per second
// the controller gets less than a tenth.
const quietTime = 10 * time.Second

// allowed reports whether a frame of a port may be looked at. A port that exceeds its rate is named in an event, and the switch
// drops all frames of the class that it sends to the controller if no meter bounds them. n.mu must be held.
func (n *Network) allowed(s *attached, at fabric.PortID, c program.Class, now time.Time) bool {
	one := &n.unknown.of(at, now).classes[c]
	if one.take(now) {
		return true
	}
	n.counters.Dropped++
	link := n.plan != nil && n.plan.Topology.CarriesLink(at)
	switch {
	case one.drop(now) && now.After(one.quiet) && !link:
		again := now.Sub(one.quiet) < noteInterval
		one.quiet, one.noted = now.Add(quietTime), now
		for _, f := range program.Quiet(s.capabilities, at.Port, c, uint16(quietTime/time.Second)) {
			_ = s.conn.Send(f.Mod()) // errors go to Handle
		}
		if !again {
			n.limited(at, fmt.Sprintf("more than %d %v per second to the controller: its switch drops them for %v", 2*rate, c, quietTime))
		}
	case one.note(now):
		n.limited(at, fmt.Sprintf("more than %d %v per second to the controller: the rest is dropped", rate, c))
	}
	return false
}

func (n *Network) limited(at fabric.PortID, sends string) {
	n.event(fabric.Event{Kind: fabric.PortLimited, Port: at, Text: fmt.Sprintf("port %s sends %s", n.label(at), sends)})
}

// noteInterval is how often the same complaint of a port is repeated.
const noteInterval = time.Minute

// note reports whether a complaint should be passed on.
func (b *bucket) note(now time.Time) bool {
	if !b.noted.IsZero() && now.Sub(b.noted) < noteInterval {
		return false
	}
	b.noted = now
	return true
}

// noteOnce reports whether a complaint of a port's discovery frames should be passed on. n.mu must be held.
func (n *Network) noteOnce(p fabric.PortID, now time.Time) bool {
	return n.unknown.of(p, now).classes[program.Questions].note(now)
}
