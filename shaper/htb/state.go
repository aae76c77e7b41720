package htb

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/shaper/classifier"
)

// Observe reads the actual state and the counters.
func (e *Engine) Observe(dev string) (shaper.State, error) {
	var st shaper.State
	err := with(dev, func(c *nl.Conn, k *kernel) (err error) {
		st, err = k.state()
		return err
	})
	return st, err
}

// ObserveAll observes several devices concurrently.
func (e *Engine) ObserveAll(devs []string) []shaper.Observed {
	return attach.ObserveAll(devs, group.HTB, func(c *nl.Conn, d *attach.Device) (st shaper.State, err error) {
		err = withDevice(c, d, func(_ *nl.Conn, k *kernel) (err error) {
			st, err = k.state()
			return err
		})
		return st, err
	})
}

func (k *kernel) state() (shaper.State, error) {
	st := shaper.State{Dev: k.Name(), Engine: group.HTB, At: time.Now(), Foreign: k.Sides[egress].After}
	notOurs, err := k.foreignIngress()
	if err != nil {
		return st, err
	}
	st.Foreign = slices.Compact(slices.Concat(st.Foreign, notOurs)) // u32 lists a filter together with its table
	ours := false
	for i := range k.sides {
		s := &k.sides[i]
		if s.Record == nil {
			continue
		}
		ours, st.Plan = true, s.Record.Plan
		st.Offloads = append(st.Offloads, k.offloads(i)...)
		d, err := s.direction()
		if err != nil {
			return st, err
		}
		if s.Record.In {
			st.In = d
		} else {
			st.Out = d
		}
	}
	if !ours {
		return st, fmt.Errorf("device %s %w", st.Dev, shaper.ErrNotShaped)
	}
	if m, err := newTransition(k, st.Plan); err == nil && !m.empty() {
		st.Drift = m.changes()
	}
	return st, nil
}

func (s *side) direction() (*shaper.DirectionState, error) {
	t := s.Record.Tree()
	counters, err := classifier.ReadCounters(s.Maps[classifier.Counters])
	if err != nil {
		return nil, err
	}
	queued, err := readQueues(s.Maps[queues])
	if err != nil {
		return nil, err
	}
	hits, err := classifier.ReadHits(s.Maps[classifier.RuleHits])
	if err != nil {
		return nil, err
	}
	d := &shaper.DirectionState{At: s.tree.at, RuleHits: hits[:min(len(hits), len(t.Rules))], Queues: s.tree.queues()}
	busy, err := s.clients(monotonic())
	if err != nil {
		return nil, err
	}
	for _, n := range t.Nodes {
		g := s.group(s.Record.Class(n), counters, queued)
		g.Path, g.Guarantee, g.Ceiling = n.Path, n.Guarantee, n.Ceiling
		if n.Adjustable {
			g.Ceiling = s.tree.limit(s.Record.Class(n), n, t.Limit)
		}
		if !n.Clients.IsZero() {
			s.sumClients(&g, n, busy, queued)
		}
		d.Groups = append(d.Groups, g)
	}
	d.Control = s.group(controlMinor, counters, queued)
	d.Control.Path = "(control)"
	d.Control.Guarantee, d.Control.Ceiling = t.Limit/controlPart, t.Limit/controlCeiling
	if d.At.IsZero() { // there is no tree
		d.At = time.Now()
	}
	d.Assigned, err = s.Assigned()
	return d, err
}

// idleAfter is the time since the last packet after which a group with an empty queue is idle.
// A second is the usual interval of monitoring.
const idleAfter = time.Second

// monotonic returns the time of the eBPF clock (bpf_ktime_get_ns).
func monotonic() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return 0 // no group is idle then
	}
	return time.Duration(now.Nano())
}

// group combines the counters of HTB and of the classifier for a class. Bytes are those that
// left HTB's queue; drops are those of the leaf, which counts segments individually, plus the
// classifier's.
func (s *side) group(minor uint16, counters []classifier.Counter, queued []queue) shaper.GroupState {
	c, l := s.tree.classes[minor], s.tree.leaves[minor]
	g := shaper.GroupState{
		Class: c.handle.String(), Bytes: c.stats.Bytes, Packets: c.stats.Packets,
		Drops: max(c.stats.Drops, l.stats.Drops), BacklogBytes: c.stats.BacklogBytes,
	}
	twin := s.tree.classes[minor|largeFrames].stats
	g.Bytes, g.Packets, g.Drops = g.Bytes+twin.Bytes, g.Packets+twin.Packets, g.Drops+twin.Drops
	if l.child != "" {
		g.BacklogBytes = l.stats.BacklogBytes
	}
	g.BacklogBytes += twin.BacklogBytes
	if int(minor) < len(counters) {
		g.Marks = counters[minor].Marks
		g.Drops += counters[minor].Drops
	}
	if int(minor) < len(queued) {
		q := queued[minor]
		g.QueuedFor, g.QueuedBytes = time.Duration(q.QueuedNS), uint64(max(0, q.QueuedBytes))
		if g.BacklogBytes > 0 || monotonic()-time.Duration(q.DepartedAtNS) < idleAfter {
			g.QueueDelay = time.Duration(q.SojournNS)
		}
	}
	return g
}

// queues returns the queue type of the leaves: fq_codel if all leaves have it.
func (t tree) queues() string {
	for _, l := range t.leaves {
		if l.flows.Flows == 0 {
			return "fifo"
		}
	}
	if len(t.leaves) == 0 {
		return "fifo" // another program removed the leaves, and HTB creates its own FIFOs
	}
	return nl.FQCodelKind
}
