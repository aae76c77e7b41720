package bottleneck

import (
	"cmp"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// Tolerance is the part of a rate by which two measurements of the same differ, chosen for Headgate: capacity and token rate are within 1 % on emulated links
// (bench probe), and a capacity on a busy host within a few per cent.
const Tolerance = 0.05

// Measurement is what a path gave.
type Measurement struct {
	// Path has the links between switches, and the lines of the hosts (reserve.Uplink, reserve.Downlink).
	Path []fabric.LinkID
	// Rate is the least of the capacity and the token rate that were measured, of layer 2.
	Rate unit.Rate
	// AtLeast reports that the path may give more.
	AtLeast bool
	// Limited reports that a limiter was found on the path.
	Limited bool
	// Bytes are how much passed at a rate that is AtLeast, and Took in how many seconds. A bucket that was full may explain it. Both are 0 if none does.
	Bytes unit.Bytes
	Took  float64
}

// maxBucket is the bucket that a short train may have emptied, chosen for Headgate: of 8 trains over a shaper of 120 Mbit/s with a bucket of 500 kB, 2 were of
// 1.2 MB and saw no limit (bench loop).
const maxBucket = 1_000_000

// bucketExplains reports whether a path of a rate would let pass as much in as short a time, by a bucket that was full.
func (m Measurement) bucketExplains(rate unit.Rate) bool {
	return m.AtLeast && m.Bytes > 0 && float64(m.Bytes) <= float64(rate)/8*m.Took+maxBucket
}

// Finding is a link that gives less than its capacity, or several of which one does.
type Finding struct {
	// Links is the link, or the suspects, sorted.
	Links []fabric.LinkID
	// Rate is what it gives.
	Rate unit.Rate
	// Likely is the one of several suspects that alone would explain all measurements which have one of them in their path. The zero value is none.
	Likely fabric.LinkID
}

// Known reports whether the link is known.
func (f Finding) Known() bool { return len(f.Links) == 1 }

// Find returns the links that give less than their capacity: those that are known first, and in the order of their links. A capacity of 0 is not known.
func Find(capacity func(fabric.LinkID) unit.Rate, all []Measurement) (found []Finding) {
	all = believed(all)
	least := leastOf(all)
	for _, m := range all {
		if m.AtLeast {
			continue
		}
		f := Finding{Rate: m.Rate}
		for _, id := range m.Path {
			if !more(least[id], m.Rate) {
				f.Links = append(f.Links, id)
			}
		}
		explained := slices.ContainsFunc(f.Links, func(l fabric.LinkID) bool { return !more(capacity(l), m.Rate) })
		if len(f.Links) > 0 && !explained {
			slices.SortFunc(f.Links, fabric.LinkID.Compare)
			found = append(found, f)
		}
	}
	known := map[fabric.LinkID]bool{}
	for _, f := range found {
		if f.Known() {
			known[f.Links[0]] = true
		}
	}
	// A path whose weak link is known says nothing about its others.
	found = slices.DeleteFunc(found, func(f Finding) bool {
		return !f.Known() && slices.ContainsFunc(f.Links, func(l fabric.LinkID) bool { return known[l] })
	})
	lists := slices.DeleteFunc(slices.Clone(found), Finding.Known)
	found = append(slices.DeleteFunc(found, func(f Finding) bool { return !f.Known() }), join(lists)...)
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(len(a.Links), len(b.Links)), slices.CompareFunc(a.Links, b.Links, fabric.LinkID.Compare), cmp.Compare(b.Rate, a.Rate))
	})
	found = slices.CompactFunc(found, func(a, b Finding) bool { return slices.Equal(a.Links, b.Links) })
	for i := range found {
		found[i].Rate = median(found[i], all)
	}
	return found
}

// median returns the median of the rates that are near that of a finding, the lower one of two. The highest is not better: what a busy host held
// back arrives at once, so that most errors are upward.
func median(f Finding, all []Measurement) unit.Rate {
	var rates []unit.Rate
	for _, m := range all {
		if !m.AtLeast && Apart(m.Rate, f.Rate) <= votesApart && slices.ContainsFunc(f.Links, func(l fabric.LinkID) bool { return slices.Contains(m.Path, l) }) {
			rates = append(rates, m.Rate)
		}
	}
	slices.Sort(rates)
	return rates[(len(rates)-1)/2]
}

// leastOf returns what each link gives at least.
func leastOf(all []Measurement) map[fabric.LinkID]unit.Rate {
	least := map[fabric.LinkID]unit.Rate{}
	for _, m := range all {
		for _, l := range m.Path {
			least[l] = max(least[l], m.Rate)
		}
	}
	return least
}

// Same reports whether two rates differ by no more than an error.
func Same(a, b unit.Rate) bool { return !more(max(a, b), min(a, b)) }

// Apart returns by what part of the higher one two rates differ.
func Apart(a, b unit.Rate) float64 { return float64(max(a, b)-min(a, b)) / float64(max(a, b, 1)) }

// more reports whether a rate is greater than another by more than an error.
func more(a, b unit.Rate) bool { return float64(a)*(1-Tolerance) > float64(b) }
