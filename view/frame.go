package view

import (
	"time"

	"headgate.dev/headgate/group"
)

// Frame is the rates of all watched devices in one interval.
type Frame struct {
	At      time.Time `json:"at"`
	Devices []Device  `json:"devices"`
}

// Device is the rates of one device in one interval.
type Device struct {
	Dev    string       `json:"dev"`
	Engine group.Engine `json:"engine,omitempty"`
	// Seconds is the length of the interval. It is 0 at the first observation of a
	// device, when there are no rates.
	Seconds    float64     `json:"seconds"`
	Directions []Direction `json:"directions"`
	Foreign    []string    `json:"foreign,omitempty"` // foreign traffic control
	Drift      []string    `json:"drift,omitempty"`   // changes that apply would make
	// Removed is set if the device, or Headgate's traffic control on it, was removed.
	Removed bool `json:"gone,omitempty"`
}

// Direction is one direction of a device. Total is the sum of groups and control
// traffic. The Ceiling of Total is the limit. Control is zero if the state does not
// have it.
type Direction struct {
	Name     string      `json:"direction"` // "out" or "in"
	Spare    group.Spare `json:"spare"`
	Assigned int         `json:"assigned"` // connections
	Total    Row         `json:"total"`
	Groups   []Row       `json:"groups"` // parents before their children
	Control  Row         `json:"control,omitzero"`
}

// Row is one group. The rates of a parent group are sums of its leaves. The delay is
// the longest of the leaves.
type Row struct {
	Path      string  `json:"path"`
	Depth     int     `json:"-"` // 0 for the total
	Leaf      bool    `json:"leaf"`
	Rate      float64 `json:"rate_bps"`
	Guarantee uint64  `json:"guarantee_bps"`
	Ceiling   uint64  `json:"ceiling_bps"`
	// Borrowed is the rate above the guarantee, Lent the unused guarantee that other
	// groups borrow.
	Borrowed float64 `json:"borrowed_bps"`
	Lent     float64 `json:"lent_bps"`
	Drops    float64 `json:"drops_per_s"`
	Marks    float64 `json:"marks_per_s"`
	// Delay is the queue delay of the last packet sent, 0 if none was sent.
	Delay   time.Duration `json:"queue_delay_ns"`
	Backlog uint64        `json:"backlog_bytes"`
	// History is the last rates, the latest last.
	History []float64 `json:"-"`

	unknown bool // the first observation, without rates
}

// totalPath is the path of the row that sums up a direction.
const totalPath = "(total)"
