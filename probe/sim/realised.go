package sim

import (
	"headgate/lab/link"
	"headgate/unit"
)

// hop is a link, and if it is recorded what cross traffic it carried.
type hop struct {
	*link.Link
	spec     link.Spec
	recorded bool
	log      []link.Result
	from, to int64 // the first and the last packet of trains came
}

func (h *hop) keep(r link.Result) {
	if h.recorded {
		h.log = append(h.log, r)
	}
}

func (h *hop) saw(at int64) {
	if h.recorded {
		if h.from == 0 {
			h.from = at
		}
		h.to = at
	}
}

func record(hops []*hop) {
	for _, h := range hops {
		h.recorded, h.log, h.from, h.to = true, nil, 0, 0
	}
}

func realised(hops []*hop) unit.Rate {
	least := unit.MaxRate
	for _, h := range hops {
		if h.to > h.from && h.spec.Slowest() > 0 {
			least = min(least, link.Available(h.spec, h.log, h.from, h.to))
		}
	}
	return least
}

// Record begins the window of Realised.
func (n *Network) Record() { record(n.links) }

// Realised is what cross traffic left of the path from the first packet of a train
// since Record to the last: the least of all hops, each in its own window, because
// what a hop carried after the last packet is not known.
func (n *Network) Realised() unit.Rate { return realised(n.links) }

// Record begins the window of Realised.
func (n *JointNetwork) Record() {
	for _, own := range n.own {
		record(own)
	}
	record(n.shared.links)
}

// Realised is the same of one sender's path.
func (n *JointNetwork) Realised(sender int) unit.Rate {
	return realised(append(append([]*hop(nil), n.own[sender]...), n.shared.links...))
}
