package fabric

// graph has the switches and usable links of a topology as indices, for the algorithms. A link's index is its position
// in Topology.Links, so that the order of indices is the order of identities.
type graph struct {
	tail, head []int32   // of each link: the switch that it leaves, and the one that it arrives at
	cost       []uint16  // of each link
	out, in    [][]int32 // of each switch: the usable links that leave it, and those that arrive, in order
	// twin is, for each link, the other direction of its cable if both are usable, and -1 otherwise.
	twin []int32
}

func newGraph(t *Topology) graph {
	n, m := len(t.parts.Switches), len(t.parts.Links)
	g := graph{
		tail: make([]int32, m), head: make([]int32, m), cost: make([]uint16, m), twin: make([]int32, m),
		out: make([][]int32, n), in: make([][]int32, n),
	}
	for i, l := range t.parts.Links {
		g.tail[i], g.head[i], g.cost[i], g.twin[i] = t.index[l.From.Switch], t.index[l.To.Switch], l.Cost, -1
		if !t.Usable(l.LinkID) {
			continue
		}
		g.out[g.tail[i]] = append(g.out[g.tail[i]], int32(i))
		g.in[g.head[i]] = append(g.in[g.head[i]], int32(i))
		if back := l.Reverse(); t.Usable(back) {
			g.twin[i] = t.leaving[back.From]
		}
	}
	return g
}

// heap is a priority queue of nodes with the least key first. A node can be in it several times; pop returns the least
// key first, so that later ones can be skipped.
type heap []heapItem

type heapItem struct {
	key  uint64
	node int32
}

func (h *heap) push(key uint64, node int32) {
	q := append(*h, heapItem{key, node})
	i := len(q) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if q[parent].key <= key {
			break
		}
		q[i] = q[parent]
		i = parent
	}
	q[i] = heapItem{key, node}
	*h = q
}

func (h *heap) pop() heapItem {
	q := *h
	top, last := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	*h = q
	if len(q) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && q[child+1].key < q[child].key {
			child++
		}
		if last.key <= q[child].key {
			break
		}
		q[i] = q[child]
		i = child
	}
	q[i] = last
	return top
}
