package host

import (
	"cmp"
	"math"
	"slices"
	"time"

	"headgate.dev/headgate/unit"
)

// Report sums up the congestions of a set, or of its part for a destination.
type Report struct {
	Set         string `json:"set"`
	Destination string `json:"destination,omitempty"`
	// Congestions is their number, Suspended the number of those in which the set was suspended, Duration their total.
	Congestions int           `json:"congestions"`
	Suspended   int           `json:"suspended"`
	Duration    time.Duration `json:"duration_ns"`
	// DryRun is set if nothing was capped in any of them.
	DryRun bool `json:"dry_run"`
	// Services are in the order of what was meant for them, the most first.
	Services []ServiceReport `json:"services"`
	// Off is by how much the part of a service differed from what was meant, at the most, as a fraction of the latter. Only services count whose data waited for
	// most of the time: the others had what they asked for.
	Off float64 `json:"off"`
}

// ServiceReport sums up the connections of a service.
type ServiceReport struct {
	Service string `json:"service"`
	// Meant is the part of those that waited that it was meant to have, Had what it had. Both are 0 for a service that did not wait.
	Meant float64 `json:"meant"`
	Had   float64 `json:"had"`
	// Rate is its mean rate in the congestions, RateMeant the one with which it would have had its part of the same total.
	Rate      unit.Rate `json:"rate"`
	RateMeant unit.Rate `json:"rate_meant"`
	// Resent is the fraction of segments that were sent again.
	Resent float64 `json:"retransmitted"`
	Waits  bool    `json:"waits"`
}

// waitsPart is the part of the time for which the data of a service that counts has waited.
const waitsPart = 0.5

// Reports sums up congestions, by set and destination.
func Reports(all []Congestion) []Report {
	out := []Report{}
	type key struct{ set, destination string }
	by := map[key][]Congestion{}
	for _, c := range all {
		k := key{c.Set, c.Destination}
		by[k] = append(by[k], c)
	}
	for k, some := range by {
		r := Report{Set: k.set, Destination: k.destination, Congestions: len(some), DryRun: true}
		for _, c := range some {
			r.Duration += c.To.Sub(c.From)
			r.DryRun = r.DryRun && c.DryRun
			if c.Suspended {
				r.Suspended++
			}
		}
		r.services(some)
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Report) int {
		return cmp.Or(cmp.Compare(a.Set, b.Set), cmp.Compare(a.Destination, b.Destination))
	})
	return out
}

// serviceSum is what the connections of a service did.
type serviceSum struct {
	carried, meant, seconds, waited float64 // bytes; meant is weighed by time
	segments, retransmits           float64
}

func (r *Report) services(all []Congestion) {
	by := map[string]*serviceSum{}
	for _, c := range all {
		for _, one := range c.Connections {
			s := by[one.Service]
			if s == nil {
				s = &serviceSum{}
				by[one.Service] = s
			}
			s.carried += float64(one.Carried)
			s.meant += one.meant() * one.Seconds
			s.seconds, s.waited = s.seconds+one.Seconds, s.waited+one.Waited
			s.segments, s.retransmits = s.segments+float64(one.Segments), s.retransmits+float64(one.Retransmits)
		}
	}
	var carried, meant float64
	for _, s := range by {
		if s.waits() {
			carried, meant = carried+s.carried, meant+s.meant
		}
	}
	for name, s := range by {
		one := ServiceReport{Service: name, Rate: rateOf(s.carried, r.Duration), RateMeant: rateOf(s.carried, r.Duration), Resent: s.retransmits / max(s.segments, 1), Waits: s.waits()}
		if one.Waits && carried > 0 && meant > 0 {
			one.Had, one.Meant = s.carried/carried, s.meant/meant
			one.RateMeant = rateOf(carried*one.Meant, r.Duration)
			r.Off = max(r.Off, math.Abs(one.Had/one.Meant-1))
		}
		r.Services = append(r.Services, one)
	}
	slices.SortFunc(r.Services, func(a, b ServiceReport) int {
		return cmp.Or(cmp.Compare(b.Meant, a.Meant), cmp.Compare(a.Service, b.Service))
	})
}

func (s *serviceSum) waits() bool {
	return s.seconds > 0 && s.waited >= waitsPart*s.seconds && s.meant > 0
}

func rateOf(bytes float64, took time.Duration) unit.Rate {
	if took <= 0 {
		return 0
	}
	return unit.Rate(bytes * 8 / took.Seconds())
}
