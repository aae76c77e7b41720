package reserve

import (
	"errors"
	"fmt"

	"headgate.dev/headgate/fabric"
)

// FindAvoided returns the request with the links of AvoidNames in Avoid. The error joins an *Invalid for each link that
// is not in the network.
func (r Request) FindAvoided(t *fabric.Topology) (Request, error) {
	var errs []error
	r.Avoid = nil
	for i, ends := range r.AvoidNames {
		id, ok := linkBetween(t, ends)
		if !ok {
			errs = append(errs, notInNetwork(i, ends))
		}
		r.Avoid = append(r.Avoid, id)
	}
	return r, errors.Join(errs...)
}

// linkBetween returns a direction of the cable between two ports.
func linkBetween(t *fabric.Topology, ends [2]string) (fabric.LinkID, bool) {
	from, ok := t.PortNamed(ends[0])
	to, also := t.PortNamed(ends[1])
	if !ok || !also {
		return fabric.LinkID{}, false
	}
	id := fabric.LinkID{From: from, To: to}
	if _, ok := t.Link(id); !ok {
		id = id.Reverse()
	}
	_, ok = t.Link(id)
	return id, ok
}

func notInNetwork(i int, ends [2]string) *Invalid {
	return invalid(fmt.Sprintf("avoid[%d]", i), "link %s - %s is not in the network: correct its ends, or remove it", ends[0], ends[1])
}
