package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// Bounds of a schedule, ours.
const (
	// MostHosts are measured each with each other, which is 2,016 pairs; mostPairs may be named.
	MostHosts = 64
	mostPairs = MostHosts * (MostHosts - 1) / 2
	mostLinks = 8 // of a host
	mostQuiet = 32
	// leastBytes has room for a handshake; mostBytes is what a server of measurements sends a client.
	leastBytes, mostBytes unit.Bytes = 200_000, 200_000_000
	leastTime, mostTime              = time.Second, time.Minute
	leastEvery, mostEvery            = time.Minute, 31 * 24 * time.Hour
)

// Problem is a mistake in a schedule: what is wrong with which field.
type Problem struct{ Field, Message string }

// Check finds all mistakes of a schedule that is whole.
func (s *Schedule) Check() (all []Problem) {
	wrong := func(field, format string, args ...any) {
		all = append(all, Problem{field, fmt.Sprintf(format, args...)})
	}
	s.checkHosts(wrong)
	s.checkPairs(wrong)
	s.checkMeasures(wrong)
	switch {
	case s.Bytes < leastBytes || s.Bytes > mostBytes:
		wrong("bytes", "%v is not possible: write %v to %v, which a measurement sends in a direction at the most", s.Bytes, leastBytes, mostBytes)
	case s.Budget < s.Cost():
		wrong("budget", "%v a day are less than one measurement may take: write %v or more, or less bytes", s.Budget, s.Cost())
	}
	if t := time.Duration(s.Time); t < leastTime || t > mostTime {
		wrong("time", "%v is not possible: write %v to %v, which a direction takes at the most", s.Time, Duration(leastTime), Duration(mostTime))
	}
	s.checkQuiet(wrong)
	return all
}

type complain func(field, format string, args ...any)

func (s *Schedule) checkHosts(wrong complain) {
	switch n := len(s.Hosts); {
	case n == 1:
		wrong("hosts", "a path has two ends: name two hosts or more, or none for all")
	case n > MostHosts && len(s.Pairs) == 0:
		wrong("hosts", "%d hosts are too many to measure each with each other: name %d at the most, or pairs", n, MostHosts)
	}
	seen := map[string]bool{}
	for i, h := range s.Hosts {
		at := fmt.Sprintf("hosts.%d", i)
		if seen[h.Host] {
			wrong(at+".host", "%s is there twice: name each host once", h.Host)
		}
		seen[h.Host] = true
		if h.Address != "" {
			if _, err := probe.ParseAddress(h.Address); err != nil {
				wrong(at+".address", "%v", err)
			}
		}
		if len(h.Links) > mostLinks {
			wrong(at+".links", "%d links are too many: the most is %d", len(h.Links), mostLinks)
		}
	}
}

func (s *Schedule) checkPairs(wrong complain) {
	if len(s.Pairs) > mostPairs {
		wrong("pairs", "%d pairs are too many: the most is %d", len(s.Pairs), mostPairs)
	}
	seen := map[[2]string]bool{}
	for i, p := range s.Pairs {
		at := fmt.Sprintf("pairs.%d", i)
		switch {
		case p[0] == p[1]:
			wrong(at, "a path has two ends: %s is both", p[0])
		case seen[p] || seen[[2]string{p[1], p[0]}]:
			wrong(at, "%s and %s are a pair already: both directions are measured", p[0], p[1])
		}
		seen[p] = true
		for _, name := range p {
			if len(s.Hosts) > 0 && !slices.ContainsFunc(s.Hosts, func(h Host) bool { return h.Host == name }) {
				wrong(at, "%s is none of the hosts: name it there, too, or leave hosts away", name)
			}
		}
	}
}

func (s *Schedule) checkMeasures(wrong complain) {
	if len(s.Measures) == 0 {
		wrong("measures", "say what is to be measured, and how often: [{measure: tokenrate, every: 6h}]")
	}
	seen := map[string]bool{}
	for i, m := range s.Measures {
		at := fmt.Sprintf("measures.%d", i)
		switch {
		case !slices.Contains(Measures, m.Measure):
			wrong(at+".measure", "%q is nothing to measure: write %s", m.Measure, strings.Join(Measures, ", "))
		case seen[m.Measure]:
			wrong(at+".measure", "%s is there twice: say once how often", m.Measure)
		}
		seen[m.Measure] = true
		if e := time.Duration(m.Every); e < leastEvery || e > mostEvery {
			wrong(at+".every", "%v is not possible: write %v to %v", m.Every, Duration(leastEvery), Duration(mostEvery))
		}
	}
}

func (s *Schedule) checkQuiet(wrong complain) {
	zone, err := time.LoadLocation(s.Zone)
	if err != nil || s.Zone == "Local" {
		wrong("zone", "%q is no time zone: write for example Europe/Berlin, or UTC", s.Zone)
		return
	}
	if len(s.Quiet) > mostQuiet {
		wrong("quiet", "%d quiet hours are too many: the most is %d", len(s.Quiet), mostQuiet)
		return
	}
	for i, w := range s.Quiet {
		at := fmt.Sprintf("quiet.%d", i)
		if w.From == w.To || w.From == wholeDay {
			wrong(at, "from %v to %v is no time: a whole day is from 00:00 to 24:00", w.From, w.To)
		}
		for _, d := range w.Days {
			if !slices.Contains(days, d) {
				wrong(at+".days", "%q is no day of the week: write %s", d, strings.Join(days, ", "))
			}
		}
	}
	monday := time.Date(2026, time.June, 1, 0, 0, 0, 0, zone)
	for at := monday; at.Before(monday.AddDate(0, 0, 7)); at = at.Add(time.Minute) {
		if !s.silent(zone, at, at.Add(s.Longest())) {
			return
		}
	}
	wrong("quiet", "they leave no %v in a week, which a measurement may take: nothing would be measured", s.Longest())
}
