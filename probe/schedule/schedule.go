package schedule

import (
	"cmp"
	"slices"
	"sync"
	"time"
	_ "time/tzdata" // a controller's machine may have no tzdata

	"headgate.dev/headgate/unit"
)

// Defaults chosen by Headgate.
const (
	// defaultBytes and defaultTime are the defaults per direction, as in "headgate
	// probe".
	defaultBytes unit.Bytes    = 10_000_000
	defaultTime  time.Duration = 30 * time.Second
	// CreditsBytes and CreditsTime are the defaults for burst credits, also of "headgate probe credits": both directions are within what a server allows by default,
	// and a measurement has to empty a bucket.
	CreditsBytes unit.Bytes    = 90_000_000
	CreditsTime  time.Duration = 50 * time.Second
	// control is the bytes of a direction divided by the bytes that the control
	// connection of a measurement may carry, about 20 bytes for each packet.
	control = 4
	// overhead is the time of a measurement beside its two directions: both agents are
	// found and notified, the handshake, and the report of the result.
	overhead = 30 * time.Second
	// maxConcurrent bounds the measurements in progress, so that thousands of hosts do not
	// load the store.
	maxConcurrent = 16
	// retryDelay is the delay of a retry after the first failure. The delay doubles with each
	// further failure, up to the regular interval.
	retryDelay = time.Minute
)

// Measures are the valid values of Measure.Measure.
var Measures = []string{"path", "capacity", "tokenrate", "limiter", "available", burstCredits}

// burstCredits is the measure with defaults of its own.
const burstCredits = "credits"

// Schedule is the configuration of the periodic measurements.
type Schedule struct {
	// Hosts take part; none is all known hosts.
	Hosts []Host `json:"hosts,omitempty"`
	// Pairs are measured by their first host; none is all pairs of hosts.
	Pairs [][2]string `json:"pairs,omitempty"`
	// Measures are measured on each pair.
	Measures []Measure `json:"measures"`
	// Bytes and Time bound one direction of a measurement. Burst credits have 90 MB and 50 s instead, and a measure may have its own.
	Bytes unit.Bytes `json:"bytes,omitempty"`
	Time  Duration   `json:"time,omitempty"`
	// Budget bounds the bytes of measurements at a host per day, in both directions.
	Budget unit.Bytes `json:"budget"`
	// Quiet are the hours without measurements. They, and days, are in time zone Zone; ""
	// is UTC.
	Quiet []Window `json:"quiet,omitempty"`
	Zone  string   `json:"zone,omitempty"`
}

// Host is a host that takes part.
type Host struct {
	Host string `json:"host"`
	// Address is where other hosts reach the host (probe.ParseAddress); "" is the address
	// from which its agent connects.
	Address string `json:"address,omitempty"`
	// Links are names of shared links. Hosts with the same name share that link.
	Links []string `json:"links,omitempty"`
}

// Measure is something to measure periodically.
type Measure struct {
	Measure string   `json:"measure"`
	Every   Duration `json:"every"`
	// Bytes and Time replace those of the schedule for this measure; 0 are those of the schedule.
	Bytes unit.Bytes `json:"bytes,omitempty"`
	Time  Duration   `json:"time,omitempty"`
}

// Task is one periodic measurement of both directions, made by the host From.
type Task struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Measure string `json:"measure"`
}

// WithDefaults returns the schedule with defaults for the fields that are not set.
func (s Schedule) WithDefaults() Schedule {
	if s.Bytes == 0 {
		s.Bytes = defaultBytes
	}
	if s.Time == 0 {
		s.Time = Duration(defaultTime)
	}
	if s.Zone == "" {
		s.Zone = "UTC"
	}
	return s
}

// Bounds returns the maximum bytes and time of one direction of a measure.
func (s *Schedule) Bounds(measure string) (unit.Bytes, Duration) {
	bytes, longest := s.Bytes, s.Time
	if measure == burstCredits {
		bytes, longest = CreditsBytes, Duration(CreditsTime)
	}
	for _, m := range s.Measures {
		if m.Measure == measure {
			return cmp.Or(m.Bytes, bytes), cmp.Or(m.Time, longest)
		}
	}
	return bytes, longest
}

// Cost returns the maximum number of bytes that a measurement sends, in both directions.
func (s *Schedule) Cost(measure string) unit.Bytes {
	bytes, _ := s.Bounds(measure)
	return Cost(bytes)
}

// Cost returns the maximum for a measurement of so many bytes per direction.
func Cost(bytes unit.Bytes) unit.Bytes { return 2*bytes + Control(bytes) }

// Control returns the maximum number of bytes on the control connection of a measurement
// of so many bytes per direction.
func Control(bytes unit.Bytes) unit.Bytes { return bytes / control }

// MaxDuration returns the maximum duration of any measurement with its overhead.
func (s *Schedule) MaxDuration() (longest time.Duration) {
	for _, m := range s.Measures {
		longest = max(longest, s.duration(m.Measure))
	}
	return longest
}

// duration returns the maximum duration of a measure with its overhead.
func (s *Schedule) duration(measure string) time.Duration {
	_, longest := s.Bounds(measure)
	return MaxDuration(longest)
}

// MaxDuration returns the maximum duration, with its overhead, of a measurement that has a time for each direction.
func MaxDuration(each Duration) time.Duration { return 2*time.Duration(each) + overhead }

// Day returns the date of now in the schedule's time zone.
func (s *Schedule) Day(now time.Time) string { return now.In(s.location()).Format(time.DateOnly) }

// zones caches the loaded time zones by name.
var zones sync.Map

// location returns the time zone. An unknown name, which Check rejects, is UTC.
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

// Tasks returns all tasks in a stable order; all are the known hosts.
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
	names = names[:min(len(names), MaxHosts)]
	for i, from := range names {
		for _, to := range names[i+1:] {
			pairs = append(pairs, [2]string{from, to})
		}
	}
	return pairs
}

// Host returns the configuration of a host.
func (s *Schedule) Host(name string) Host {
	for _, h := range s.Hosts {
		if h.Host == name {
			return h
		}
	}
	return Host{Host: name}
}

// every returns the interval of a measure.
func (s *Schedule) every(measure string) time.Duration {
	for _, m := range s.Measures {
		if m.Measure == measure {
			return time.Duration(m.Every)
		}
	}
	return 0
}
