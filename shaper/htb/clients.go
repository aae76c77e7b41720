package htb

import (
	"fmt"
	"time"

	"headgate/group"
	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/classifier"
	"headgate/unit"
)

// A group that is one for every client is a class with an HTB of its own, as a group that
// has groups is. In that HTB are its clients' places: classes that are all alike, made with
// the group, of which the classifier gives one to each client that appears
// (docs/decisions/0029-one-group-per-client.md).

// clientMemory bounds in bytes what the queues of a group's clients may hold if all are
// full; each holds queuePackets frames in any case. With 10,000 clients a queue is 52 KB,
// and up to 1,600 of them have that of a group.
const clientMemory = 512 << 20

// isClient tells whether a minor number is that of a client's place.
func isClient(minor uint16) bool { return minor >= classifier.FirstClient && minor&largeFrames == 0 }

// goesWith tells whether the HTB that a class is in goes with the class of its group.
func goesWith(handle nl.Handle, wanted map[uint16]nl.Handle) bool {
	parent, ok := ofHTB(handle.Major())
	_, stays := wanted[parent]
	return ok && !stays
}

// clients adds the places of a group's clients.
func (b builder) clients(out []class, node int, of class, places classifier.Places) []class {
	n := b.tree.Nodes[node]
	out[len(out)-1].inner, out[len(out)-1].clients = n.Depth, n.Clients
	c := class{
		parent: of.minor, leaf: true, path: of.path + ", each client",
		guarantee: n.Clients.Guarantee, ceiling: n.Clients.Ceiling, queue: b.clientLeaf(n.Clients),
		htb: b.class(float64(n.Clients.Guarantee), n.Clients.Ceiling),
	}
	b.inside(&c.htb, group.Node{Parent: node, Ceiling: c.ceiling})
	c.htb.Quantum, c.htb.Prio = uint32(b.least(c.ceiling)), 1
	for i := range places.Count {
		c.minor, c.client = places.First+i, int(i)+1
		out = append(out, c)
	}
	return out
}

// clientLeaf is a client's queue: one FIFO, because the memory of a queue for each flow,
// times 10,000, is too much.
func (b builder) clientLeaf(c group.Clients) leaf {
	l := builder{link: facts{mtu: b.link.mtu, overhead: b.link.overhead, near: b.link.near}}.leaf(c.Guarantee, c.Ceiling)
	if each := clientMemory / uint64(c.Most); each < writeBytes {
		least := max(float64(c.Ceiling.BytesPerSecond())*queueTime, float64(each), float64(queuePackets*b.link.frame()))
		l.fifo.Limit = bytes32(least * slack)
	}
	return l
}

// twinOfAll is the one class of all clients of a group for frames that are larger than
// leaves pass which split packets: they are then held to the group's rates alone.
func (b builder) twinOfAll(c class) class {
	t := b.twin(c)
	t.minor, t.client, t.guarantee = c.parent|largeFrames, 0, 0
	t.htb.Rate, t.htb.Buffer = 1, nl.BufferTicks(superPacket, 1)
	t.ceiling = unit.MaxRate
	t.htb.Ceil, t.htb.Cbuffer = lends.Ceil, lends.Cbuffer
	return t
}

// clients are those of a side that are active.
func (s *side) clients(now time.Duration) ([]classifier.Client, error) {
	return classifier.ReadClients(s.Maps[classifier.ClientPlaces], *s.Record.Tree(), *s.Record, now-group.ClientIdle*time.Second)
}

// together makes a group's state that of all its clients.
func (s *side) together(g *shaper.GroupState, n group.Node, busy []classifier.Client, queued []queue) {
	g.Clients = &shaper.ClientsState{Most: n.Clients.Most}
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

// Clients lists the active clients of a device's groups that are one for every client.
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
