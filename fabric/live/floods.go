package live

import (
	"fmt"
	"time"

	"headgate.dev/headgate/fabric"
)

// A frame whose destination is not known goes to all ports of hosts, through the controller: a question for an address that no known
// host has, for example. A host that scans a network makes as many of them as it asks questions.
//
// Each port has a bucket of frames, and all have one of copies together: each port to which a frame goes is one. Its lower half is for
// ports that have at least half of their own buckets. So a host that scans takes nothing from others, and any number of hosts that
// scan leave half of the copies to hosts that ask for a few addresses.
const (
	// floodRate and floodBurst are in frames per second and frames: a host that starts asks for a few addresses, and one that scans gets
	// through a /24 in 13 s.
	floodRate, floodBurst = 20, 100
	// copyRate and copyBurst are in copies per second and copies: at 10,000 ports of hosts of 1,000 switches a copy takes 1.4 us of the
	// controller, mostly to write to the switches, so that all take 0.14 of a processor. Of 10,000 ports 10 frames per second pass, of 100 ports
	// 1,000.
	copyRate, copyBurst = 100_000, 500_000
)

// mayFlood reports whether a frame of a port may go to all ports of hosts. n.mu must be held.
func (n *Network) mayFlood(at fabric.PortID, now time.Time) bool {
	own, all := &n.unknown.of(at, now).floods, &n.copies
	own.fill(floodRate, floodBurst, now)
	if all.at.IsZero() {
		all.tokens = copyBurst
	}
	all.fill(copyRate, copyBurst, now)
	least := 0.0
	if own.tokens < floodBurst/2 {
		least = copyBurst / 2
	}
	why := fmt.Sprintf("more than %d frames per second to addresses that no known host has: the rest is dropped", floodRate)
	if own.tokens >= 1 {
		own.tokens-- // also of a frame that is dropped: the port asks for much
		if all.tokens > least {
			return true
		}
		why = fmt.Sprintf("frames to addresses that no known host has, and all ports together more than the controller sends on, which is %d copies per second: some are dropped", copyRate)
	}
	n.counters.DroppedFloods++
	if own.note(now) {
		n.limited(at, why)
	}
	return false
}

// flooded charges the copies of a frame that was sent to all ports of hosts. n.mu must be held.
func (n *Network) flooded(copies int) {
	n.counters.Flooded++
	n.copies.tokens -= float64(copies)
}
