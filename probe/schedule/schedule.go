package schedule

import (
	"slices"
	"sync"
	"time"
	_ "time/tzdata" // machines of controllers may have none

	"headgate/unit"
)

// Ours.
const (
	// ordinaryBytes and ordinaryTime are of a direction, as with "headgate probe".
	ordinaryBytes unit.Bytes    = 10_000_000
	ordinaryTime  time.Duration = 30 * time.Second
	// control is the part of the bytes of a direction that the connection may carry by which two hosts
	// speak about a measurement: it has some 20 bytes for each packet.
	control = 4
	// around is how long a measurement may take beside its two directions: until both agents are found
	// and know of it, for the handshake, and until its result is known.
	around = 30 * time.Second
	// mostAtOnce measurements are under way, so that thousands of hosts do not make the store busy.
	mostAtOnce = 16
	// again is how long after a failure it is tried again, twice as long after each further one, and never
	// less often than it is measured anyway.
	again = time.Minute
)

// Measures are what can be measured.
var Measures = []string{"path", "capacity", "tokenrate", "limiter", "available"}

// Schedule is what an operator wants.
type Schedule struct {
	// Hosts take part; none is all that there are.
	Hosts []Host `json:"hosts,omitempty"`
	// Pairs are measured, by the first host of each; none is every host with every other.
	Pairs [][2]string `json:"pairs,omitempty"`
	// Measures is what is measured between them.
	Measures []Measure `json:"measures"`
	// Bytes is what a measurement sends in a direction at the most, and Time how long it takes for it.
	Bytes unit.Bytes `json:"bytes,omitempty"`
	Time  Duration   `json:"time,omitempty"`
	// Budget is what measurements may bring through a host in a day, in both directions.
	Budget unit.Bytes `json:"budget"`
	// Quiet are the hours in which nothing is measured. They, and days, are those of a time zone; "" is UTC.
	Quiet []Window `json:"quiet,omitempty"`
	Zone  string   `json:"zone,omitempty"`
}

// Host is one that takes part.
type Host struct {
	Host string `json:"host"`
	// Address is where others find it (probe.ParseAddress); "" is where its agent comes from.
	Address string `json:"address,omitempty"`
	// Links are names for what it shares with other hosts that have the same names here.
	Links []string `json:"links,omitempty"`
}

// Measure is something that is measured again and again.
type Measure struct {
	Measure string   `json:"measure"`
	Every   Duration `json:"every"`
}

// Task is one measurement that is made again and again: of both directions, by the host From.
type Task struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Measure string `json:"measure"`
}

// Whole is the schedule with what it leaves out.
func (s Schedule) Whole() Schedule {
	if s.Bytes == 0 {
		s.Bytes = ordinaryBytes
	}
	if s.Time == 0 {
		s.Time = Duration(ordinaryTime)
	}
	if s.Zone == "" {
		s.Zone = "UTC"
	}
	return s
}

// Cost is what a measurement sends at the most, in both directions.
func (s *Schedule) Cost() unit.Bytes { return Cost(s.Bytes) }

// Cost is that of one which sends so many bytes in a direction.
func Cost(bytes unit.Bytes) unit.Bytes { return 2*bytes + Control(bytes) }

// Control is what is said about a measurement at the most, of so many bytes in a direction.
func Control(bytes unit.Bytes) unit.Bytes { return bytes / control }

// Longest is how long a measurement takes at the most, with all around it.
func (s *Schedule) Longest() time.Duration { return 2*time.Duration(s.Time) + around }

// Day is the name of the day, where the operator says.
func (s *Schedule) Day(now time.Time) string { return now.In(s.location()).Format(time.DateOnly) }

// zones are those that were read, by name.
var zones sync.Map

// location is the zone; a name that is not known was refused (Check), and is UTC.
func (s *Schedule) location() *time.Location {
	if l, ok := zones.Load(s.Zone); ok {
		return l.(*time.Location)
	}
	l, err := time.LoadLocation(s.Zone)
	if err != nil {
		return time.UTC
	}
	zones.Store(s.Zone, l)
	return l
}

// Tasks are all that is measured, in an order that stays; all are the hosts that there are.
func (s *Schedule) Tasks(all []string) (tasks []Task) {
	for _, pair := range s.pairs(all) {
		for _, m := range s.Measures {
			tasks = append(tasks, Task{pair[0], pair[1], m.Measure})
		}
	}
	return tasks
}

func (s *Schedule) pairs(all []string) (pairs [][2]string) {
	if len(s.Pairs) > 0 {
		return s.Pairs
	}
	names := slices.Sorted(slices.Values(all))
	if len(s.Hosts) > 0 {
		names = nil
		for _, h := range s.Hosts {
			names = append(names, h.Host)
		}
	}
	names = names[:min(len(names), MostHosts)]
	for i, from := range names {
		for _, to := range names[i+1:] {
			pairs = append(pairs, [2]string{from, to})
		}
	}
	return pairs
}

// Host is what is said of one.
func (s *Schedule) Host(name string) Host {
	for _, h := range s.Hosts {
		if h.Host == name {
			return h
		}
	}
	return Host{Host: name}
}

// every is how often something is measured.
func (s *Schedule) every(measure string) time.Duration {
	for _, m := range s.Measures {
		if m.Measure == measure {
			return time.Duration(m.Every)
		}
	}
	return 0
}
