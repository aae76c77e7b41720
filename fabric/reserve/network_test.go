package reserve

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// network makes a random connected network, each switch of which has a port for hosts.
func network(rnd *rand.Rand, switches, cables int, capacities ...unit.Rate) *fabric.Topology {
	var p fabric.Parts
	for i := range switches {
		p.Switches = append(p.Switches, fabric.Switch{ID: fabric.DPID(i + 1), Name: fmt.Sprintf("s%d", i+1), Ports: []fabric.Port{{No: 1, Speed: 100 * unit.Gbit}}})
	}
	port := func(i int) fabric.PortID {
		s := &p.Switches[i]
		s.Ports = append(s.Ports, fabric.Port{No: fabric.PortNo(len(s.Ports) + 1)})
		return fabric.PortID{Switch: s.ID, Port: s.Ports[len(s.Ports)-1].No}
	}
	cable := func(i, j int) {
		id := fabric.LinkID{From: port(i), To: port(j)}
		c := capacities[rnd.IntN(len(capacities))]
		p.Links = append(p.Links, fabric.Link{LinkID: id, Capacity: c, Cost: 1}, fabric.Link{LinkID: id.Reverse(), Capacity: c, Cost: 1})
	}
	for i := 1; i < switches; i++ {
		cable(i, rnd.IntN(i))
	}
	for range cables - (switches - 1) {
		i := rnd.IntN(switches)
		cable(i, (i+1+rnd.IntN(switches-1))%switches)
	}
	top, err := fabric.New(p)
	if err != nil {
		panic(err)
	}
	return top
}

func port(i int) fabric.PortID { return fabric.PortID{Switch: fabric.DPID(i), Port: 1} }

// simple returns all paths without a repeated switch.
func simple(top *fabric.Topology, from, to fabric.DPID) (all []fabric.Path) {
	seen := map[fabric.DPID]bool{from: true}
	var walk func(at fabric.DPID, path fabric.Path)
	walk = func(at fabric.DPID, path fabric.Path) {
		if at == to {
			all = append(all, slices.Clone(path))
			return
		}
		for _, l := range top.Links() {
			if l.From.Switch == at && !seen[l.To.Switch] && top.Usable(l.LinkID) {
				seen[l.To.Switch] = true
				walk(l.To.Switch, append(path, l.LinkID))
				delete(seen, l.To.Switch)
			}
		}
	}
	walk(from, nil)
	return all
}
