package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit/rounded"
	"headgate.dev/headgate/usage"
)

// DeviceClients are the active clients of a device.
type DeviceClients struct {
	Dev     string       `json:"dev"`
	Clients []ClientRate `json:"clients"`
}

// ClientRate describes a client and its traffic between two readings.
type ClientRate struct {
	Direction string        `json:"direction"`
	Group     string        `json:"group"`
	Client    string        `json:"client"` // a prefix, or "no address"
	Class     string        `json:"class"`
	Since     time.Time     `json:"since"`
	Bytes     uint64        `json:"bytes"` // offered since then, layer 2
	Rate      float64       `json:"rate_bps"`
	Drops     uint64        `json:"drops"` // between the two readings
	Backlog   uint64        `json:"backlog_bytes"`
	Delay     time.Duration `json:"queue_delay_ns"`
}

// ClientRates computes the clients' rates between two readings. A client that is not in the first
// reading has no rate.
func ClientRates(was, now []shaper.Client) []ClientRate {
	type place struct{ direction, class string }
	before := map[place]shaper.Client{}
	for _, c := range was {
		before[place{c.Direction, c.Class}] = c
	}
	out := []ClientRate{}
	for _, c := range now {
		r := ClientRate{
			Direction: c.Direction, Group: c.Group, Client: c.Name(), Class: c.Class, Since: c.Since, Bytes: c.Bytes,
			Backlog: c.BacklogBytes, Delay: c.QueueDelay,
		}
		if b, ok := before[place{c.Direction, c.Class}]; ok && b.Client == c.Client && c.Passed >= b.Passed && c.Drops >= b.Drops {
			r.Rate, r.Drops = usage.RateOver(c.Passed-b.Passed, b.At, c.At), c.Drops-b.Drops
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b ClientRate) int {
		return cmp.Or(cmp.Compare(b.Direction, a.Direction), cmp.Compare(a.Group, b.Group), cmp.Compare(b.Rate, a.Rate))
	})
	return out
}

// WriteClients prints a line for each client.
func WriteClients(w io.Writer, all []DeviceClients) error {
	rows := [][]string{{"DEV", "", "GROUP", "CLIENT", "CLASS", "RATE", "BYTES", "DROPS", "BACKLOG", "DELAY"}}
	for _, d := range all {
		for _, c := range d.Clients {
			rows = append(rows, []string{
				d.Dev, c.Direction, c.Group, c.Client, c.Class, rounded.Rate(c.Rate), rounded.Bytes(c.Bytes), fmt.Sprint(c.Drops), rounded.Bytes(c.Backlog), rounded.Delay(c.Delay),
			})
		}
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintln(w, "no active clients: a group with each: has a client while the client's address sends")
		return err
	}
	return text.Table(w, "", rows)
}
