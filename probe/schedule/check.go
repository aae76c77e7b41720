package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Limits of a schedule, chosen by Headgate.
const (
	// MaxHosts is the maximum number of hosts of which all pairs are measured, which is
	// 2,016 pairs. maxPairs is the maximum number of pairs that are listed.
	MaxHosts = 64
	maxPairs = MaxHosts * (MaxHosts - 1) / 2
	maxLinks = 8 // per host
	maxQuiet = 32
	// minBytes is enough for a handshake; maxBytes is the default cap of a measurement
	// server for a client.
	minBytes, maxBytes unit.Bytes = 200_000, 200_000_000
	minTime, maxTime              = time.Second, time.Minute
	// Burst credits of gigabytes take minutes to fill again.
	maxCreditsBytes          unit.Bytes = 100_000_000_000
	maxCreditsTime                      = 10 * time.Minute
	minInterval, maxInterval            = time.Minute, 31 * 24 * time.Hour
)

// Problem is an error in a schedule: the field and the message.
type Problem struct{ Field, Message string }

// Check returns all errors of a schedule to which WithDefaults has been applied.
func (s *Schedule) Check() (all []Problem) {
	wrong := func(field, format string, args ...any) {
		all = append(all, Problem{field, fmt.Sprintf(format, args...)})
	}
	s.checkHosts(wrong)
	s.checkPairs(wrong)
	s.checkMeasures(wrong)
	checkBounds(wrong, "", s.Bytes, s.Time, maxBytes, maxTime)
	most := unit.Bytes(0)
	for _, m := range s.Measures {
		most = max(most, s.Cost(m.Measure))
	}
	if s.Budget < most && len(all) == 0 {
		wrong("budget", "%v per day is less than one measurement may use: use at least %v, or reduce bytes", s.Budget, most)
	}
	s.checkQuiet(wrong)
	return all
}

// checkBounds checks the bytes and the time of a direction, which are fields below a prefix.
func checkBounds(wrong reportFunc, prefix string, bytes unit.Bytes, length Duration, mostBytes unit.Bytes, mostTime time.Duration) {
	if bytes < minBytes || bytes > mostBytes {
		wrong(prefix+"bytes", "%v per direction is out of range: use %v to %v", bytes, minBytes, mostBytes)
	}
	if t := time.Duration(length); t < minTime || t > mostTime {
		wrong(prefix+"time", "%v per direction is out of range: use %v to %v", length, Duration(minTime), Duration(mostTime))
	}
}

type reportFunc func(field, format string, args ...any)

func (s *Schedule) checkHosts(wrong reportFunc) {
	switch n := len(s.Hosts); {
	case n == 1:
		wrong("hosts", "a single host has no path: list two hosts or more, or none for all hosts")
	case n > MaxHosts && len(s.Pairs) == 0:
		wrong("hosts", "%d hosts are too many to measure all pairs: list at most %d, or list pairs", n, MaxHosts)
	}
	seen := map[string]bool{}
	for i, h := range s.Hosts {
		at := fmt.Sprintf("hosts.%d", i)
		if seen[h.Host] {
			wrong(at+".host", "%s is listed twice: list each host once", h.Host)
		}
		seen[h.Host] = true
		if h.Address != "" {
			if _, err := probe.ParseAddress(h.Address); err != nil {
				wrong(at+".address", "%v", err)
			}
		}
		if len(h.Links) > maxLinks {
			wrong(at+".links", "%d links are too many: the maximum is %d", len(h.Links), maxLinks)
		}
	}
}

func (s *Schedule) checkPairs(wrong reportFunc) {
	if len(s.Pairs) > maxPairs {
		wrong("pairs", "%d pairs are too many: the maximum is %d", len(s.Pairs), maxPairs)
	}
	seen := map[[2]string]bool{}
	for i, p := range s.Pairs {
		at := fmt.Sprintf("pairs.%d", i)
		switch {
		case p[0] == p[1]:
			wrong(at, "both ends are %s: use two different hosts", p[0])
		case seen[p] || seen[[2]string{p[1], p[0]}]:
			wrong(at, "%s and %s are already a pair: a pair is measured in both directions", p[0], p[1])
		}
		seen[p] = true
		for _, name := range p {
			if len(s.Hosts) > 0 && !slices.ContainsFunc(s.Hosts, func(h Host) bool { return h.Host == name }) {
				wrong(at, "%s is not in hosts: add it there, or remove hosts", name)
			}
		}
	}
}

func (s *Schedule) checkMeasures(wrong reportFunc) {
	if len(s.Measures) == 0 {
		wrong("measures", "no measures: list what to measure and how often, for example [{measure: tokenrate, every: 6h}]")
	}
	seen := map[string]bool{}
	for i, m := range s.Measures {
		at := fmt.Sprintf("measures.%d", i)
		switch {
		case !slices.Contains(Measures, m.Measure):
			wrong(at+".measure", "%q is not a known measure: use one of %s", m.Measure, strings.Join(Measures, ", "))
		case seen[m.Measure]:
			wrong(at+".measure", "%s is listed twice: list each measure once", m.Measure)
		}
		seen[m.Measure] = true
		if e := time.Duration(m.Every); e < minInterval || e > maxInterval {
			wrong(at+".every", "%v is out of range: use %v to %v", m.Every, Duration(minInterval), Duration(maxInterval))
		}
		mostBytes, mostTime := maxBytes, maxTime
		if m.Measure == burstCredits {
			mostBytes, mostTime = maxCreditsBytes, maxCreditsTime
		}
		checkBounds(wrong, at+".", cmp.Or(m.Bytes, minBytes), cmp.Or(m.Time, Duration(minTime)), mostBytes, mostTime)
	}
}

func (s *Schedule) checkQuiet(wrong reportFunc) {
	zone, err := time.LoadLocation(s.Zone)
	if err != nil || s.Zone == "Local" {
		wrong("zone", "%q is not a known time zone: use for example Europe/Berlin or UTC", s.Zone)
		return
	}
	if len(s.Quiet) > maxQuiet {
		wrong("quiet", "%d quiet hours are too many: the maximum is %d", len(s.Quiet), maxQuiet)
		return
	}
	for i, w := range s.Quiet {
		at := fmt.Sprintf("quiet.%d", i)
		if w.From == w.To || w.From == wholeDay {
			wrong(at, "from %v to %v is empty: for a whole day use from 00:00 to 24:00", w.From, w.To)
		}
		for _, d := range w.Days {
			if !slices.Contains(days, d) {
				wrong(at+".days", "%q is not a day of the week: use one of %s", d, strings.Join(days, ", "))
			}
		}
	}
	monday := time.Date(2026, time.June, 1, 0, 0, 0, 0, zone)
	for at := monday; at.Before(monday.AddDate(0, 0, 7)); at = at.Add(time.Minute) {
		if !s.silent(zone, at, at.Add(s.MaxDuration())) {
			return
		}
	}
	wrong("quiet", "quiet hours leave no %v in the week, which a measurement may take: shorten them", s.MaxDuration())
}
