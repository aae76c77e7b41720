package fabric

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// NextHop is where a switch sends packets for one destination switch. Port 0 is none.
//
// A switch uses three rules, in this order:
//
//  1. A rerouted packet that arrives at port Best, which is against its usual direction, leaves by Detour.
//  2. Any other rerouted packet leaves by Best.
//  3. Any other packet leaves by Best; while Best is down it becomes a rerouted packet and leaves by Backup. This is a
//     fast-failover group of two buckets (OpenFlow 1.3.5, 5.6.1).
//
// A packet of rules 1 and 2 is dropped if its port is down. doc.go says what this covers, and what is lost if switches
// cannot mark rerouted packets.
type NextHop struct {
	// Best leads along the path of the lowest cost.
	Best PortNo
	// Backup leads to the destination without the cable at Best.
	Backup PortNo
	// Detour is for rerouted packets that arrive at Best. It is 0 where none can arrive.
	Detour PortNo
	// Hairpin reports that packets may have come from the switch at port Backup, so that they leave by the port at which
	// they arrived. OpenFlow drops them unless the action is output to OFPP_IN_PORT (7.2.1).
	Hairpin bool
	// SurvivesSwitch reports that Backup leads around the next switch too, and not only around the cable. It is false
	// where the next switch is the destination.
	SurvivesSwitch bool
}

// NextHops has the next hops of all switches to all switches. It never changes.
type NextHops struct {
	t  *Topology
	to [][]NextHop // by destination, then by switch
}

// perWorker is to how many destinations one goroutine at least computes the next hops: those of 100 switches take a millisecond.
const perWorker = 100

// NextHops computes the next hops over cables that are usable in both directions, on all processors if there are many switches.
func (t *Topology) NextHops() *NextHops {
	n := len(t.parts.Switches)
	h := &NextHops{t: t, to: make([][]NextHop, n)}
	var begun atomic.Int32
	var workers sync.WaitGroup
	for range max(1, min(runtime.GOMAXPROCS(0), n/perWorker)) {
		workers.Go(func() {
			c := newRerouting(t)
			for d := begun.Add(1) - 1; int(d) < n; d = begun.Add(1) - 1 {
				h.to[d] = make([]NextHop, n)
				c.compute(d, h.to[d])
			}
		})
	}
	workers.Wait()
	return h
}

// At returns the next hop of a switch to another. It is zero at the destination itself, where there is no path, and
// for switches that do not exist.
func (h *NextHops) At(at, to DPID) NextHop {
	a, d, ok := h.t.ends(at, to)
	if !ok {
		return NextHop{}
	}
	return h.to[d][a]
}

// From returns the next hops of a switch to all switches, in the order of Topology.Switches, nil if it does not exist.
func (h *NextHops) From(at DPID) []NextHop {
	a, ok := h.t.index[at]
	if !ok {
		return nil
	}
	all := make([]NextHop, len(h.to))
	for d := range h.to {
		all[d] = h.to[d][a]
	}
	return all
}

// NextHopChange is a next hop that differs between two topologies.
type NextHopChange struct {
	At, To   DPID
	Old, New NextHop // zero if the switch did not exist, or does not exist now
}

// Changes returns what differs from earlier next hops, by destination and then by switch.
func (h *NextHops) Changes(old *NextHops) []NextHopChange {
	var changes []NextHopChange
	for d, to := range h.t.parts.Switches {
		for a, at := range h.t.parts.Switches {
			if was, is := old.At(at.ID, to.ID), h.to[d][a]; was != is {
				changes = append(changes, NextHopChange{at.ID, to.ID, was, is})
			}
		}
	}
	for d, to := range old.t.parts.Switches {
		for a, at := range old.t.parts.Switches {
			_, okTo := h.t.index[to.ID]
			_, okAt := h.t.index[at.ID]
			if was := old.to[d][a]; !(okTo && okAt) && was != (NextHop{}) {
				changes = append(changes, NextHopChange{At: at.ID, To: to.ID, Old: was})
			}
		}
	}
	return changes
}
