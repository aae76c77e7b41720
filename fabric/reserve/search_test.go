package reserve

import (
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

// utilised is the highest utilisation of a link in [from, to) with a rate more, and never if it is above 1.
func (o oracle) utilised(id fabric.LinkID, rate unit.Rate, from, to time.Time) int64 {
	most := int64(0)
	for _, at := range append(o.moments(), from) {
		if !at.Before(from) && at.Before(to) {
			used := o.used(id, at) + rate
			if used > o.limit(id) {
				return never
			}
			most = max(most, (int64(used)*whole+int64(o.limit(id))-1)/int64(o.limit(id)))
		}
	}
	return most
}

// least is the least total of weight of all sets of disjoint paths for a request, and never if there are none.
func (o oracle) least(r Request, from, to time.Time) uint64 {
	a := newAsk(r)
	total := func(p fabric.Path) (sum uint64) {
		for _, id := range p {
			used := o.utilised(id, unit.Rate(a.part(a.forward)), from, to)
			if a.reverse > 0 {
				used = max(used, o.utilised(id.Reverse(), unit.Rate(a.part(a.reverse)), from, to))
			}
			if used == never || slices.Contains(r.Avoid, id) || slices.Contains(r.Avoid, id.Reverse()) {
				return never
			}
			sum += weight(used)
		}
		return sum
	}
	least := uint64(never)
	var try func(rest, chosen []fabric.Path, sum uint64)
	try = func(rest, chosen []fabric.Path, sum uint64) {
		if len(chosen) == a.count {
			least = min(least, sum)
			return
		}
		for i, p := range rest {
			if t := total(p); t != never && !slices.ContainsFunc(chosen, func(q fabric.Path) bool { return share(p, q, r.Disjoint) }) {
				try(rest[i+1:], append(chosen, p), sum+t)
			}
		}
	}
	try(simple(o.top, r.Source.At.Switch, r.Destination.At.Switch), nil, 0)
	return least
}

// What is granted has the least total of weight that any set of paths has at that time.
func TestFindAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := smallNetwork(t)
		for range rapid.IntRange(1, 8).Draw(t, "requests") {
			r := drawRequest(t, b, zero)
			o := newOracle(b)
			got, err := b.Admit(r, zero)
			if err != nil {
				continue
			}
			after := newOracle(b)
			sum := uint64(0)
			for _, p := range got.Paths {
				for _, id := range p.Links {
					a := newAsk(r) // a path can have 1 bit/s less than the greatest, which the search counts
					used := after.utilised(id, unit.Rate(a.part(a.forward))-p.Forward, got.Start, got.End)
					if a.reverse > 0 {
						used = max(used, after.utilised(id.Reverse(), unit.Rate(a.part(a.reverse))-p.Reverse, got.Start, got.End))
					}
					sum += weight(used)
				}
			}
			if least := o.least(r, got.Start, got.End); sum != least {
				t.Fatalf("%v has a total of %d, and the least is %d", got.Paths, sum, least)
			}
		}
	})
}
