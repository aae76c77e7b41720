package store

import (
	"fmt"
	"time"

	"headgate.dev/headgate/unit"
)

// Reserved is the most that reservations have at a time, now or later, of an interface of a host with an agent. It counts as a guarantee beside
// those of the groups (decision 39). The leader of the controllers writes it in the transaction that grants.
type Reserved struct {
	OutBps uint64 `json:"out_bps,omitempty"`
	InBps  uint64 `json:"in_bps,omitempty"`
	// Until is when the last of the reservations ends, in seconds since 1970: after that nothing is reserved, also if no leader has
	// written so because the agent of the host is gone.
	Until int64 `json:"until,omitempty"`
}

// ReservedKey returns the key of what is reserved of an interface, by the name of its document: dev can be a pattern.
func ReservedKey(host, dev string) string { return Key(ReservedOf, host, dev) }

// Of returns the rate in a direction, "out" or "in".
func (r Reserved) Of(direction string) unit.Rate {
	if direction == "in" {
		return unit.Rate(r.InBps)
	}
	return unit.Rate(r.OutBps)
}

// Excess returns by how much guarantees and reservations exceed the limit of a direction at a moment, and a sentence about it. It is 0 without a
// limit.
func (i *Interface) Excess(direction string, reserved Reserved, now time.Time) (unit.Rate, string) {
	d := i.Direction(direction)
	if d == nil || now.Unix() > reserved.Until {
		return 0, ""
	}
	guaranteed, held := d.Guaranteed(), reserved.Of(direction)
	if guaranteed+held <= d.Limit {
		return 0, ""
	}
	left := d.Limit - min(held, d.Limit)
	return guaranteed + held - d.Limit, fmt.Sprintf("guarantees total %v of %v, of which reservations have %v: lower them to %v or less, or cancel reservations", guaranteed, d.Limit, held, left)
}
