package view

import (
	"time"

	"headgate/group"
)

// Frame is what every watched device did in one interval.
type Frame struct {
	At      time.Time `json:"at"`
	Devices []Device  `json:"devices"`
}

// Device is one device in one interval.
type Device struct {
	Dev    string       `json:"dev"`
	Engine group.Engine `json:"engine,omitempty"`
	// Seconds is the interval; 0 at a device's first observation, when nothing can
	// be said of rates.
	Seconds    float64     `json:"seconds"`
	Directions []Direction `json:"directions"`
	Foreign    []string    `json:"foreign,omitempty"` // traffic control that is not ours
	Drift      []string    `json:"drift,omitempty"`   // what an apply would mend
	// Gone: the device, or all that was ours on it, is not there any more.
	Gone bool `json:"gone,omitempty"`
}

// Direction is one direction of a device. Total sums up its groups and control
// traffic, of which the state may know nothing; its Ceiling is the limit.
type Direction struct {
	Name     string      `json:"direction"` // "out" or "in"
	Spare    group.Spare `json:"spare"`
	Assigned int         `json:"assigned"` // connections
	Total    Row         `json:"total"`
	Groups   []Row       `json:"groups"` // parents before their children
	Control  Row         `json:"control,omitzero"`
}

// Row is one group. What a group with children did is the sum of its leaves;
// its delay is the longest of theirs.
type Row struct {
	Path      string  `json:"path"`
	Depth     int     `json:"-"` // 0 for the total
	Leaf      bool    `json:"leaf"`
	Rate      float64 `json:"rate_bps"`
	Guarantee uint64  `json:"guarantee_bps"`
	Ceiling   uint64  `json:"ceiling_bps"`
	// Borrowed is the rate beyond the guarantee, Lent what others borrowed of it.
	Borrowed float64 `json:"borrowed_bps"`
	Lent     float64 `json:"lent_bps"`
	Drops    float64 `json:"drops_per_s"`
	Marks    float64 `json:"marks_per_s"`
	// Delay is how long the packet that left last had waited; 0 if none left.
	Delay   time.Duration `json:"queue_delay_ns"`
	Backlog uint64        `json:"backlog_bytes"`
	// History are the last rates, the latest last.
	History []float64 `json:"-"`

	unknown bool // there was no observation before this one
}

// Names of rows that are no groups.
const (
	totalPath   = "(total)"
	controlPath = "(control)"
)
