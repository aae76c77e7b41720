package store

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/unit"
)

// ScheduleKey is the key of the probe schedule.
var ScheduleKey = Key(Probing, "schedule")

// Keys of the schedule's state: running measurements, the last attempt of each task, the bytes that
// a host has sent and received, the newest result of each task, and all results of a pair.
func RunKey(id string) string              { return Key(Probing, "runs", id) }
func LastKey(t schedule.Task) string       { return Key(Probing, "last", t.From, t.To, t.Measure) }
func LedgerKey(host string) string         { return Key(Probing, "spent", host) }
func NewestKey(t schedule.Task) string     { return Key(Newest, t.From, t.To, t.Measure) }
func ResultsPrefix(t schedule.Task) string { return Prefix(Probes, t.From, t.To) }

// ProbeKey returns the key of a result. The results of a pair and direction are sorted newest first.
func ProbeKey(t schedule.Task, at time.Time) string {
	return Key(Probes, t.From, t.To, fmt.Sprintf("%016x-%s", math.MaxInt64-at.UnixNano(), t.Measure))
}

// ParseProbeName parses the last part of a result's key: the time and the measure.
func ParseProbeName(name string) (at time.Time, measure string, ok bool) {
	before, measure, ok := strings.Cut(name, "-")
	ns, err := strconv.ParseInt(before, 16, 64)
	return time.Unix(0, math.MaxInt64-ns), measure, ok && err == nil
}

// ProbeRun is a running measurement. The leader starts it. The controllers to which its hosts' agents
// are connected advance it, and delete it at its end.
type ProbeRun struct {
	ID string `json:"id"`
	schedule.Run
	Bytes unit.Bytes        `json:"bytes"`
	Time  schedule.Duration `json:"time"`
	Zone  string            `json:"zone"`
	Began time.Time         `json:"began"`
	// Keep is how many results are kept in each direction.
	Keep int `json:"keep"`
	// FromAt and ToAt are the hosts' addresses in the schedule; "" means the address of the host's agent.
	FromAt string `json:"from_at,omitempty"`
	ToAt   string `json:"to_at,omitempty"`
	// Client is the address of the measuring host, "" until its agent is found. Server is the address of
	// the peer's measurement server, "" until the server has started.
	Client string `json:"client,omitempty"`
	Server string `json:"server,omitempty"`
	// Started is whether the agent was asked to measure, which happens once.
	Started bool `json:"asked,omitempty"`
	// ServerEnd is the server's end of the path.
	ServerEnd ProbeEnd `json:"server_end,omitzero"`
}

// ProbeEnd describes one end of a path.
type ProbeEnd struct {
	// Devices are the devices that packets pass: the outgoing one, then those below or inside it, then
	// the alternative names of all these.
	Devices []string `json:"devices,omitempty"`
	// Out and In are the ceilings of the group to which the measurement's packets belong, per direction;
	// 0 means no limit.
	Out unit.Rate `json:"out,omitempty"`
	In  unit.Rate `json:"in,omitempty"`
}

// ProbeResult is the result of a measurement in one direction of a path.
type ProbeResult struct {
	ID string `json:"id,omitempty"`
	schedule.Task
	// By is the measuring host, one of the two.
	By  string        `json:"by,omitempty"`
	At  time.Time     `json:"at,omitzero"`
	RTT time.Duration `json:"rtt_ns,omitempty"`
	// Answer is a path.Answer; it is empty before the first successful measurement.
	Answer json.RawMessage `json:"answer,omitempty"`
	// FromDevices and ToDevices are the devices that the measurement passed at each end. OwnLimit is the
	// lowest limit that Headgate enforced there.
	FromDevices []string  `json:"from_devices,omitempty"`
	ToDevices   []string  `json:"to_devices,omitempty"`
	OwnLimit    unit.Rate `json:"own_limit,omitempty"`
	// Attempted is the time of the last attempt. Error is why that attempt failed or was incomplete.
	Attempted time.Time `json:"tried"`
	Error     string    `json:"trouble,omitempty"`
}
