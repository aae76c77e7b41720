package htb

import "headgate/group"

// Unequal is where what is lent is in another proportion than the guarantees: two groups
// with the same parent, whose turns differ by less than their guarantees do.
type Unequal struct {
	Parent       string // path, "" for the limit
	Least, Most  string // paths
	Wanted, Lent float64
}

// Approximate tells where a tree lends only roughly as share.Allocate says, of groups
// that have guarantees: a turn is at least one packet and lasts no longer than turnTime.
func Approximate(t group.Tree) (out []Unequal) {
	if t.Spare != group.Proportional {
		return nil
	}
	b := newBuilder(t, facts{mtu: ethernetMTU})
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
		u := Unequal{
			Least: small.Path, Most: large.Path,
			Wanted: ratio(uint64(t.Weight(large)), uint64(t.Weight(small))), Lent: ratio(b.quantum(large), b.quantum(small)),
		}
		if parent >= 0 {
			u.Parent = t.Nodes[parent].Path
		}
		if u.Lent < u.Wanted*(1-tolerated) {
			out = append(out, u)
		}
	}
	return out
}

// tolerated is how far the proportion may be off unsaid.
const tolerated = 0.05

// ethernetMTU is what most devices have: the file may be for another machine.
const ethernetMTU = 1500
