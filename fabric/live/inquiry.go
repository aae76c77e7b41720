package live

import (
	"context"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// A port from which no discovery frame came has a link that passes nothing, or the frames are late: this program had no processor, or a
// switch has much else to do. An echo request tells which. A switch answers it after what it was sent before, and the answer comes
// after all that the switch has sent before, so that this has been handled.

// passage is for how long a frame may be on a link. It is less than a tick, so that the sender's switch is asked at one tick, and the
// receiver's at the next.
const passage = tick * 9 / 10

// inquiry is the question whether nothing passes from one port to another.
type inquiry struct {
	// began is when a last frame was sent.
	began time.Time
	// left is when the sender's switch had answered a request that came after the frame, zero before.
	left time.Time
	// over reports that the receiver's switch has answered a request that was sent when the frame had passed. If it received the frame,
	// that was observed.
	over bool
}

// expireLinks removes links of which it is known that nothing passes. n.mu must be held.
func (n *Network) expireLinks(now time.Time) {
	going := map[fabric.LinkID]*inquiry{} // without those of links that were observed again
	found := n.links.Expire(now, func(id fabric.LinkID) bool {
		q := n.inquiries[id]
		if q == nil {
			q = &inquiry{began: now}
			n.send(n.switches[id.From.Switch], now, ofLink, id.From.Port)
		}
		if !q.over {
			going[id] = q
		}
		return q.over
	})
	n.inquiries = going
	n.rewired(found)
	for id, q := range going { // all frames have been sent
		switch {
		case q.left.IsZero():
			n.askSwitch(id.From.Switch, now)
		case now.Sub(q.left) >= passage:
			n.askSwitch(id.To.Switch, now)
		}
	}
}

// askSwitch asks a switch, unless it has been asked and did not answer yet. n.mu must be held.
func (n *Network) askSwitch(id fabric.DPID, now time.Time) {
	if s := n.switches[id]; !s.asking {
		s.asking = true
		go n.echo(s, func(ok bool) {
			s.asking = false
			if ok && n.switches[id] == s {
				n.answered(id, now)
			}
		})
	}
}

// answered takes the answer of a switch to a request that was sent at a time. n.mu must be held.
func (n *Network) answered(id fabric.DPID, asked time.Time) {
	now, over := time.Now(), false
	for link, q := range n.inquiries {
		switch {
		case q.left.IsZero():
			if link.From.Switch == id && !asked.Before(q.began) {
				q.left = now
			}
		case link.To.Switch == id && asked.Sub(q.left) >= passage:
			q.over, over = true, true
		}
	}
	if over {
		n.expireLinks(now)
	}
}

// echo sends an echo request to a switch (OpenFlow 1.3.5, section 7.5.2), and calls then when it is answered, or will not be. n.mu is
// held in the call.
func (n *Network) echo(s *attached, then func(ok bool)) {
	ctx, cancel := context.WithTimeout(n.ctx, stepTimeout)
	defer cancel()
	_, err := s.conn.Request(ctx, &openflow.EchoRequest{})
	n.mu.Lock()
	defer n.mu.Unlock()
	then(err == nil)
}
