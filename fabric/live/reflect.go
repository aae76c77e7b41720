package live

import (
	"time"

	"headgate.dev/headgate/fabric"
)

// A switch that the controller does not reach may forward as before, or have ended. Its neighbours can tell: the controller has them
// send it frames, which it sends back as its rules say (program.Reflection), without a controller.
const (
	// reflectInterval and reflectTimeout find a switch that has ended within half a second: three frames may be lost.
	reflectInterval, reflectTimeout = tick, 4 * tick
)

// reflection is what is known of the switch at the other end of a port's link.
type reflection struct {
	// began and asked are when it was asked first and last, and heard when a frame last came back.
	began, asked, heard time.Time
	// sure is the last of these times of which the neighbour has certainly sent the frame: it has answered an echo request that came
	// after it. So a channel that is slow is not taken for a link that passes nothing.
	sure    time.Time
	echoing bool // an echo request has no answer yet
}

// stopped reports that nothing came back of frames that were certainly sent.
func (r *reflection) stopped() bool {
	last := r.began
	if r.heard.After(last) {
		last = r.heard
	}
	return r.sure.Sub(last) >= reflectTimeout
}

// stopped reports whether it is known that nothing passes between a port and the switch at the other end of its link, which the
// controller does not reach. n.mu must be held.
func (n *Network) stopped(p fabric.PortID) bool {
	r := n.reflections[p]
	return r != nil && r.stopped()
}

// passes reports whether frames pass between a port and the switch at the other end of its link, which the controller does not reach,
// and asks it again. A port that cannot ask is believed: the controller does not reach its switch either. n.mu must be held.
func (n *Network) passes(p fabric.PortID, now time.Time) bool {
	s := n.switches[p.Switch]
	if s == nil || s.conn.Silent() >= silence {
		return true
	}
	if n.ports[p] == nil {
		return false
	}
	r := n.reflections[p]
	if r == nil || now.Sub(r.asked) > reflectTimeout { // it is a new question
		r = &reflection{began: now}
		n.reflections[p] = r
	}
	if now.Sub(r.asked) >= reflectInterval {
		r.asked = now
		n.out(s, p.Port, n.frames.make(p, ofReflection, now))
		if !r.echoing {
			r.echoing = true
			go n.echo(s, func(ok bool) {
				r.echoing = false
				if ok {
					r.sure = now
				}
			})
		}
	}
	return !r.stopped()
}

// reflected takes a frame that left a port and came back. n.mu must be held.
func (n *Network) reflected(from, at fabric.PortID, now time.Time) {
	if from != at {
		return
	}
	if r := n.reflections[at]; r != nil {
		r.heard = now
	}
	p := n.ports[at]
	if peer, ok := n.links.Peer(at); ok && p != nil && n.ports[peer] != nil {
		p.reflected = now
		n.rewired(n.links.Observe(at, peer, now))
		n.rewired(n.links.Observe(peer, at, now))
	}
}

// A frame that comes back has passed both directions of a cable: one port sends instead of two, and one switch tells the controller. As
// long as frames come back, others are sent only each confirmInterval, because those tell what is at the other end. A switch that cannot send back, or has
// no rules yet, is sent other frames.

// reflecting reports whether a port sends frames that come back for its cable, and whether they do. n.mu must be held.
func (n *Network) reflecting(id fabric.PortID, now time.Time) (mine, passes bool) {
	peer, ok := n.links.Peer(id)
	if !ok {
		return false, false
	}
	sender := id
	if sends(peer, id) {
		sender = peer
	}
	p := n.ports[sender]
	return sender == id, p != nil && now.Sub(p.reflected) < linkTimeout
}

// sends chooses one of two ports, so that a switch sends at half of its ports.
func sends(a, b fabric.PortID) bool {
	x, y := uint64(a.Switch)+uint64(a.Port)<<48, uint64(b.Switch)+uint64(b.Port)<<48
	return (x < y) == ((x^y)*0x9e3779b97f4a7c15>>63 == 0)
}
