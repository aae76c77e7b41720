package htb

import "headgate.dev/headgate/group"

// DisproportionatePair describes two groups of the same parent between which spare bandwidth is divided in
// another proportion than their guarantees, because their quanta differ by less than their
// guarantees.
type DisproportionatePair struct {
	Parent          string // path, "" for the limit
	Lowest, Highest string // paths of the groups with the lowest and the highest guarantee
	// GuaranteeRatio is the ratio of their guarantees, LentRatio that of the lent bandwidth.
	GuaranteeRatio, LentRatio float64
}

// DisproportionateLending returns the places where a tree divides spare bandwidth only roughly as
// share.Allocate does, among groups with guarantees: a quantum is at least one packet and lasts
// at most turnTime.
func DisproportionateLending(t group.Tree) (out []DisproportionatePair) {
	if t.Spare != group.Proportional {
		return nil
	}
	b := newBuilder(t, linkFacts{mtu: ethernetMTU})
	for parent := -1; parent < len(t.Nodes); parent++ {
		least, most := -1, -1
		for i, n := range t.Nodes {
			if n.Parent != parent || n.Guarantee == 0 {
				continue
			}
			if least < 0 || n.Guarantee < t.Nodes[least].Guarantee {
				least = i
			}
			if most < 0 || n.Guarantee > t.Nodes[most].Guarantee {
				most = i
			}
		}
		if least < 0 {
			continue
		}
		ratio := func(a, b uint64) float64 { return float64(a) / float64(max(b, 1)) }
		small, large := t.Nodes[least], t.Nodes[most]
		u := DisproportionatePair{
			Lowest: small.Path, Highest: large.Path,
			GuaranteeRatio: ratio(uint64(t.Weight(large)), uint64(t.Weight(small))), LentRatio: ratio(b.quantum(large), b.quantum(small)),
		}
		if parent >= 0 {
			u.Parent = t.Nodes[parent].Path
		}
		if u.LentRatio < u.GuaranteeRatio*(1-reportThreshold) {
			out = append(out, u)
		}
	}
	return out
}

// reportThreshold is the relative deviation that is not reported.
const reportThreshold = 0.05

// ethernetMTU is the MTU of most devices; the configuration may be for another machine.
const ethernetMTU = 1500
