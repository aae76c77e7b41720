package live

import (
	"context"
	"fmt"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// Changes of the flows of connections go to a switch in portions. After any change Open vSwitch looks again at all flows that its datapath has, which takes it
// longer the more connections there are, and forwards late meanwhile: with 200 redirected connections a second, each with four flows that come and go, others waited
// ten times longer for their first packet than with ten portions a second (bench loop, many).

// Constants of portions, chosen for Headgate.
const (
	// A switch gets portionRate portions a second, after a burst of portionBurst: few connections wait for nothing. Then portions go at the multiples of portionTime, so
	// that the bridges of one Open vSwitch get theirs together.
	portionRate, portionBurst = 10, 20
	portionTime               = time.Second / portionRate
	// lazyTime is how long changes wait that nobody waits for, unless a portion goes before.
	lazyTime = 250 * time.Millisecond
)

// portions are the changes that wait for the next portion of a switch.
type portions struct {
	changes []openflow.Message
	then    []func(error)
	budget  bucket
	busy    bool // a portion is under way, or waits for its time
	lazy    bool // changes are sent after lazyTime
}

// changeFlows gives switches changes, in the order of the calls, and calls then with the first error once all have processed theirs. A switch that refuses one change of
// a portion gives the error to all of it. n.mu is held when then is called. n.mu must be held.
func (n *Network) changeFlows(changes map[*attached][]openflow.Message, then func(error)) {
	left := len(changes)
	if left == 0 {
		then(nil)
		return
	}
	var first error
	for s, messages := range changes {
		p := &s.portions
		p.changes = append(p.changes, messages...)
		p.then = append(p.then, func(err error) {
			if err != nil && first == nil {
				first = fmt.Errorf("switch %v: %w", s.id, err)
			}
			if left--; left == 0 {
				then(first)
			}
		})
		if !p.busy {
			n.nextPortion(s)
		}
	}
}

// changeLater is changeFlows for changes that nobody waits for. n.mu must be held.
func (n *Network) changeLater(changes map[*attached][]openflow.Message) {
	for s, messages := range changes {
		p := &s.portions
		p.changes = append(p.changes, messages...)
		if p.lazy {
			continue
		}
		p.lazy = true
		time.AfterFunc(lazyTime, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			if p.lazy = false; !p.busy && len(p.changes) > 0 {
				n.nextPortion(s)
			}
		})
	}
}

// nextPortion sends a switch its next portion when it may go. n.mu must be held.
func (n *Network) nextPortion(s *attached) {
	p, now := &s.portions, time.Now()
	p.busy = true
	p.budget.fill(portionRate, portionBurst, now)
	if p.budget.tokens--; p.budget.tokens >= 0 {
		n.sendPortion(s)
		return
	}
	time.AfterFunc(now.Truncate(portionTime).Add(portionTime).Sub(now), func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.sendPortion(s)
	})
}

// sendPortion sends a switch what waits. n.mu must be held.
func (n *Network) sendPortion(s *attached) {
	p := &s.portions
	changes, then := p.changes, p.then
	p.changes, p.then = nil, nil
	go func() {
		ctx, cancel := context.WithTimeout(n.ctx, setupTimeout)
		err := s.conn.Apply(ctx, changes...)
		cancel()
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, f := range then {
			f(err)
		}
		if p.busy = len(p.then) > 0; p.busy || len(p.changes) > 0 && !p.lazy {
			n.nextPortion(s)
		}
	}()
}
