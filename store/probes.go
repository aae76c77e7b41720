package store

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"headgate/probe/schedule"
	"headgate/unit"
)

// ScheduleKey has the one schedule by which hosts measure to each other.
var ScheduleKey = Key(Probing, "schedule")

// Keys of what is known of the measurements of a schedule: what is under way, when each task was
// measured last, and what that brought through a host.
func RunKey(id string) string            { return Key(Probing, "runs", id) }
func LastKey(t schedule.Task) string     { return Key(Probing, "last", t.From, t.To, t.Measure) }
func SpentKey(host string) string        { return Key(Probing, "spent", host) }
func NewestKey(t schedule.Task) string   { return Key(Newest, t.From, t.To, t.Measure) }
func ProbesBelow(t schedule.Task) string { return Prefix(Probes, t.From, t.To) }

// ProbeKey is of a result: those of a direction follow each other, the newest first.
func ProbeKey(t schedule.Task, at time.Time) string {
	return Key(Probes, t.From, t.To, fmt.Sprintf("%016x-%s", math.MaxInt64-at.UnixNano(), t.Measure))
}

// ProbeOf is what and when it was, of the last part of a result's key.
func ProbeOf(name string) (at time.Time, measure string, ok bool) {
	before, measure, ok := strings.Cut(name, "-")
	ns, err := strconv.ParseInt(before, 16, 64)
	return time.Unix(0, math.MaxInt64-ns), measure, ok && err == nil
}

// ProbeRun is a measurement under way. The leader of the controllers begins it; whichever of them has
// the agents of its hosts carries it on, and takes it away when it is over.
type ProbeRun struct {
	ID string `json:"id"`
	schedule.Run
	Bytes unit.Bytes        `json:"bytes"`
	Time  schedule.Duration `json:"time"`
	Zone  string            `json:"zone"`
	Began time.Time         `json:"began"`
	// Keep is how many results are kept of it in each direction.
	Keep int `json:"keep"`
	// FromAt and ToAt are where the hosts are, as the schedule says; "" is where their agents come from.
	FromAt string `json:"from_at,omitempty"`
	ToAt   string `json:"to_at,omitempty"`
	// Client is the address of the host that measures, "" until its agent is found, and Server where the
	// other one lets it, "" until it does.
	Client string `json:"client,omitempty"`
	Server string `json:"server,omitempty"`
	// Asked is that the host was asked to measure, which is done once.
	Asked bool `json:"asked,omitempty"`
	// ServerEnd is what the server knows of its end.
	ServerEnd ProbeEnd `json:"server_end,omitzero"`
}

// ProbeEnd is what a host knows of its end of a path.
type ProbeEnd struct {
	// Devices are what packets pass: the one they leave by, and those under it or in it, and then
	// alternative names of these.
	Devices []string `json:"devices,omitempty"`
	// Out and In are the most that Headgate lets through there, in the group that a measurement is
	// in; 0 is that it sets no limit.
	Out unit.Rate `json:"out,omitempty"`
	In  unit.Rate `json:"in,omitempty"`
}

// ProbeResult is what was measured of one direction of a path.
type ProbeResult struct {
	ID string `json:"id,omitempty"`
	schedule.Task
	// By is the host that measured, which is one of the two.
	By  string        `json:"by,omitempty"`
	At  time.Time     `json:"at,omitzero"`
	RTT time.Duration `json:"rtt_ns,omitempty"`
	// Answer is path.Answer; there is none where nothing was measured yet.
	Answer json.RawMessage `json:"answer,omitempty"`
	// FromDevices and ToDevices are what it passed at its ends, and Own the least limit that Headgate
	// had there.
	FromDevices []string  `json:"from_devices,omitempty"`
	ToDevices   []string  `json:"to_devices,omitempty"`
	Own         unit.Rate `json:"own_limit,omitempty"`
	// Tried is when it was tried last, and Trouble why that was in vain, or not all was measured.
	Tried   time.Time `json:"tried"`
	Trouble string    `json:"trouble,omitempty"`
}
