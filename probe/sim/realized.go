package sim

import (
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// hop is a link that can record the cross traffic that it carries.
type hop struct {
	*link.Link
	spec     link.Spec
	recorded bool
	log      []link.Result
	from, to int64 // arrival of the first and the last packet of trains
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

// available returns the available bandwidth of the hop, unit.MaxRate if it is not limited or saw no train.
func (h *hop) available() unit.Rate {
	if h.to > h.from && h.spec.Slowest() > 0 {
		return link.Available(h.spec, h.log, h.from, h.to)
	}
	return unit.MaxRate
}

func realised(hops []*hop) unit.Rate {
	lowest := unit.MaxRate
	for _, h := range hops {
		lowest = min(lowest, h.available())
	}
	return lowest
}

// Record begins the window of Realised.
func (n *Network) Record() { record(n.links) }

// Realised returns the available bandwidth of the path, from the first packet of a train
// since Record to the last: the minimum of all hops, each in its own window, because the
// traffic of a hop after the last packet is unknown.
func (n *Network) Realised() unit.Rate { return realised(n.links) }

// RealisedHops returns the available bandwidth of each hop in the same windows, unit.MaxRate of one that is not limited.
func (n *Network) RealisedHops() (out []unit.Rate) {
	for _, h := range n.links {
		out = append(out, h.available())
	}
	return out
}

// Record begins the window of Realised.
func (n *JointNetwork) Record() {
	for _, own := range n.branches {
		record(own)
	}
	record(n.shared.links)
}

// Realised returns the available bandwidth of one sender's path.
func (n *JointNetwork) Realised(sender int) unit.Rate {
	return realised(append(append([]*hop(nil), n.branches[sender]...), n.shared.links...))
}
