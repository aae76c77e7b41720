package program

import (
	"encoding/binary"
	"hash/fnv"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// Between switches, a frame of a circuit has a label of its path instead of that of the destination's switch. It is a VLAN tag with an id
// that labels of switches do not use, 1 to 3071, which no frame between switches has otherwise, and with a priority of 2 to 7. Best effort has
// the priorities 0 and 1, so that a line or a bridge between two switches that heeds priorities never gives it that of a circuit.
//
// A switch on the way has one flow for each path and not for each circuit: circuits with the same links share a label. Labels are unique in
// each switch that a path passes, and used again elsewhere: a switch can carry 18,426 paths. What follows the label is not looked at, so
// that a circuit of layer 2 needs no more than one of layer 3.

// PathLabel is the label of a path: the priority in bits 12 to 14, and the VLAN id.
type PathLabel uint16

const (
	pathIDs                = int(MaxHostVLAN) // VLAN ids from 1 on
	firstPathPCP           = 2
	lastPathPCP            = 7
	pathLabels             = pathIDs * (lastPathPCP - firstPathPCP + 1)
	noPath       PathLabel = 0
)

func (l PathLabel) vid() uint16 { return uint16(l) & 0xfff }
func (l PathLabel) pcp() uint8  { return uint8(l >> 12) }

// pathLabel returns the nth label, and index which one a label is.
func pathLabel(n int) PathLabel {
	return PathLabel((firstPathPCP+n/pathIDs)<<12 | 1 + n%pathIDs)
}

func (l PathLabel) index() int {
	return (int(l.pcp())-firstPathPCP)*pathIDs + int(l.vid()) - 1
}

// fields match the label.
func (l PathLabel) fields() []openflow.Field {
	return []openflow.Field{openflow.VLAN(l.vid()), openflow.VLANPCP(l.pcp())}
}

// route is a path with the spare one that its first switch changes to. What is not reserved (Circuit.Rest) has routes of its own, because it passes other meters.
type route struct {
	path, spare fabric.Path
	rest        bool
}

// key identifies a route.
func (r route) key() string {
	b := make([]byte, 0, 12*(len(r.path)+len(r.spare))+1)
	for _, p := range []fabric.Path{r.path, r.spare} {
		for _, l := range p {
			b = binary.BigEndian.AppendUint64(b, uint64(l.From.Switch))
			b = binary.BigEndian.AppendUint32(b, uint32(l.From.Port))
		}
		b = append(b, '/')
	}
	if r.rest {
		b = append(b, 'r')
	}
	return string(b)
}

// PathLabels are the labels of routes, by their keys.
type PathLabels map[string]PathLabel

// assign gives each route a label that no other one has in any switch of its path. Those that have one keep it. A new one gets the label
// that follows from its links if it is free, so that controllers that know nothing of each other mostly give the same. Routes for which there is none
// are not in the result.
func (have PathLabels) assign(routes map[string]route) PathLabels {
	keys := make([]string, 0, len(routes))
	for k := range routes {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	taken := map[fabric.DPID]map[PathLabel]bool{}
	all := make(PathLabels, len(keys))
	take := func(key string, l PathLabel) bool {
		free := func(id fabric.DPID) bool { return !taken[id][l] }
		path := routes[key].path
		for _, link := range path {
			if !free(link.From.Switch) || !free(link.To.Switch) {
				return false
			}
		}
		for _, link := range path {
			for _, id := range []fabric.DPID{link.From.Switch, link.To.Switch} {
				if taken[id] == nil {
					taken[id] = map[PathLabel]bool{}
				}
				taken[id][l] = true
			}
		}
		all[key] = l
		return true
	}
	var without []string
	for _, k := range keys {
		if l := have[k]; l == noPath || !take(k, l) {
			without = append(without, k)
		}
	}
	for _, k := range without {
		h := fnv.New32a()
		_, _ = h.Write([]byte(k)) // it returns no error
		first := int(h.Sum32() % uint32(pathIDs))
		for n := range pathLabels {
			// All ids of one priority come before the next.
			if take(k, pathLabel(n/pathIDs*pathIDs+(first+n)%pathIDs)) {
				break
			}
		}
	}
	return all
}
