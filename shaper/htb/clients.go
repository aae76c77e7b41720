package htb

import (
	"fmt"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/classifier"
	"headgate.dev/headgate/unit"
)

// A group with each is a class with an HTB of its own, like a parent group. This HTB has the
// places of the group's clients: identical classes, created with the group, of which the
// classifier assigns one to each client that appears
// (docs/decisions/0029-one-group-per-client.md).

// clientMemory is the maximum number of bytes in the queues of a group's clients if all are
// full; each queue holds at least queuePackets frames. With 10,000 clients a queue has 52 KB;
// up to 1,600 clients have the queue size of a group.
const clientMemory = 512 << 20

// isClient reports whether a minor number is that of a client's place.
func isClient(minor uint16) bool { return minor >= classifier.FirstClient && minor&largeFrames == 0 }

// removedWithGroup reports whether a class is removed together with the class of its group.
func removedWithGroup(handle nl.Handle, wanted map[uint16]nl.Handle) bool {
	parent, ok := ofHTB(handle.Major())
	_, stays := wanted[parent]
	return ok && !stays
}

// clients appends the classes of a group's clients.
func (b builder) clients(out []class, node int, of class, places classifier.ClientRange) []class {
	n := b.tree.Nodes[node]
	out[len(out)-1].inner, out[len(out)-1].clients = n.Depth, n.Clients
	c := class{
		parent: of.minor, leaf: true, path: of.path,
		guarantee: n.Clients.Guarantee, ceiling: n.Clients.Ceiling, queue: b.clientLeaf(n.Clients),
		htb: b.class(float64(n.Clients.Guarantee), n.Clients.Ceiling),
	}
	b.keepCredit(&c.htb, n.Parent) // clients have the same ceiling, so that those who reach it do not wait for each other
	b.nest(&c.htb, group.Node{Parent: node, Ceiling: c.ceiling})
	c.htb.Quantum, c.htb.Prio = uint32(b.maxPacket(c.ceiling)), 1
	for i := range places.Count {
		c.minor, c.client = places.First+i, int(i)+1
		out = append(out, c)
	}
	return out
}

// clientLeaf returns a client's queue: one FIFO, because a queue per flow would need too much
// memory for 10,000 clients.
func (b builder) clientLeaf(c group.Clients) leaf {
	l := builder{link: linkFacts{mtu: b.link.mtu, overhead: b.link.overhead, near: b.link.near}}.leaf(c.Guarantee, c.Ceiling)
	if each := clientMemory / uint64(c.Most); each < writeBytes {
		least := max(float64(c.Ceiling.BytesPerSecond())*queueTime, float64(each), float64(queuePackets*b.link.frame()))
		l.fifo.Limit = bytes32(least * slack)
	}
	return l
}

// clientsLargeFrameClass returns the single class of all clients of a group for frames larger than the
// leaves pass if these split packets. Such frames are limited only by the group's rates.
func (b builder) clientsLargeFrameClass(c class) class {
	t := b.largeFrameClass(c)
	t.minor, t.client, t.guarantee = c.parent|largeFrames, 0, 0
	t.htb.Rate, t.htb.Buffer = 1, nl.BufferTicks(superPacket, 1)
	t.ceiling = unit.MaxRate
	t.htb.Ceil, t.htb.Cbuffer = unlimitedClass.Ceil, unlimitedClass.Cbuffer
	return t
}

// clients returns the active clients of a side.
func (s *side) clients(now time.Duration) ([]classifier.Client, error) {
	return classifier.ReadClients(s.Maps[classifier.ClientPlaces], *s.Record.Tree(), *s.Record, now-group.ClientIdle*time.Second)
}

// sumClients sets a group's state to the totals of its clients.
func (s *side) sumClients(g *shaper.GroupState, n group.Node, busy []classifier.Client, queued []queue) {
	g.Clients = &shaper.ClientsState{Max: n.Clients.Most}
	minor := s.Record.Class(n)
	for _, c := range busy {
		if c.Group == minor {
			g.Clients.Active++
			g.QueueDelay = max(g.QueueDelay, s.group(c.Minor, nil, queued).QueueDelay)
		}
	}
	g.QueuedFor, g.QueuedBytes = 0, 0
	var drops uint64
	places := s.Record.Places[n.Path]
	for i := range places.Count {
		drops += s.group(places.First+i, nil, nil).Drops
	}
	g.Drops = max(g.Drops, drops)
}

// Clients lists the active clients of a device's groups with each.
func (e *Engine) Clients(dev string) (out []shaper.Client, err error) {
	err = with(dev, func(_ *nl.Conn, k *kernel) error {
		ours := false
		for i := range k.sides {
			s := &k.sides[i]
			if s.Record == nil {
				continue
			}
			ours = true
			list, err := s.listClients()
			if err != nil {
				return err
			}
			out = append(out, list...)
		}
		if !ours {
			return fmt.Errorf("device %s %w", k.Name(), shaper.ErrNotShaped)
		}
		return nil
	})
	return out, err
}

func (s *side) listClients() (out []shaper.Client, err error) {
	now, clock := time.Now(), monotonic()
	busy, err := s.clients(clock)
	if err != nil || len(busy) == 0 {
		return nil, err
	}
	queued, err := readQueues(s.Maps[queues])
	if err != nil {
		return nil, err
	}
	path := map[uint16]string{}
	for _, n := range s.Record.Tree().Nodes {
		path[s.Record.Class(n)] = n.Path
	}
	direction := "out"
	if s.Record.In {
		direction = "in"
	}
	for _, c := range busy {
		g := s.group(c.Minor, nil, queued)
		out = append(out, shaper.Client{
			Direction: direction, Group: path[c.Group], Client: c.Prefix, Class: g.Class, Since: now.Add(c.Since - clock), Bytes: c.Bytes,
			Passed: g.Bytes, Drops: g.Drops, BacklogBytes: g.BacklogBytes, QueueDelay: g.QueueDelay, At: s.tree.at,
		})
	}
	return out, nil
}
