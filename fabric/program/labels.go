package program

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// Labels are VLAN ids of an outer tag that frames have between switches: one names the switch of the destination, so that the
// switches on the way need a rule for each switch and none for each host. A priority (PCP) of 1 in the tag is the mark of a frame
// that took a backup (fabric.NextHop).
const (
	firstLabel uint16 = 3072
	lastLabel  uint16 = 4093
	// floodLabel is of broadcast and multicast.
	floodLabel uint16 = 4094
	// labelMask: the VLAN ids from 3072 on, and no others, have these bits. Hosts must not use them.
	labelMask uint16 = 0xc00
	// rerouted is the priority of the mark.
	rerouted = 1
)

// MaxSwitches is how many switches a network can have.
const MaxSwitches = int(lastLabel-firstLabel) + 1

// MaxHostVLAN is the highest VLAN id that frames of hosts can have: those above are labels.
const MaxHostVLAN = firstLabel - 1

// AssignLabels gives each switch a label, and those that have one keep it.
func AssignLabels(have map[fabric.DPID]uint16, switches []fabric.Switch) (map[fabric.DPID]uint16, error) {
	if len(switches) > MaxSwitches {
		return nil, fmt.Errorf("%d switches, but a network has at most %d: divide it", len(switches), MaxSwitches)
	}
	labels, taken := make(map[fabric.DPID]uint16, len(switches)), map[uint16]bool{}
	var without []fabric.DPID
	for _, s := range switches {
		if l, ok := have[s.ID]; ok && firstLabel <= l && l <= lastLabel && !taken[l] {
			labels[s.ID], taken[l] = l, true
		} else {
			without = append(without, s.ID)
		}
	}
	slices.Sort(without) // so that all controllers give the same
	next := firstLabel
	for _, id := range without {
		for taken[next] {
			next++
		}
		labels[id], taken[next] = next, true
	}
	return labels, nil
}

// The groups of a switch.
func towardGroup(label uint16) openflow.GroupID { return firstGroup + openflow.GroupID(label) }
func hairpinGroup(label uint16) openflow.GroupID {
	return firstGroup + 0x1000 + openflow.GroupID(label)
}

const (
	fromHostsGroup = firstGroup + 0x2000
	fromTreeGroup  = firstGroup + 0x2001
)

// GroupName says what a group of Headgate is for, "" for other groups.
func GroupName(id openflow.GroupID) string {
	switch label := uint16(id & 0xfff); {
	case !Managed.group(id):
		return ""
	case id >= firstChoice:
		return "of the paths of a circuit"
	case id >= firstRoute:
		return fmt.Sprintf("of the path with label %d", pathLabel(int(id-firstRoute)))
	case id == fromHostsGroup:
		return "of broadcast from hosts"
	case id == fromTreeGroup:
		return "of broadcast from switches"
	case id == hairpinGroup(label):
		return fmt.Sprintf("to the switch with label %d, or back", label)
	case id == towardGroup(label):
		return fmt.Sprintf("to the switch with label %d", label)
	}
	return ""
}

// VLANOf returns the VLAN id that a field matches, 0 for frames without a tag.
func VLANOf(f openflow.Field) uint16 { return uint16(f.Uint()) & 0xfff }
