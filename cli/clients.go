package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit/rounded"
	"headgate.dev/headgate/usage"
)

// clientLister is implemented by engines that list the clients of groups with each.
type clientLister interface {
	Clients(dev string) ([]shaper.Client, error)
}

func (a *app) clients(engine group.Engine, dev string) ([]shaper.Client, error) {
	lister, ok := a.engines[engine].(clientLister)
	if !ok {
		return nil, nil // the engine has no groups with each
	}
	return lister.Clients(dev)
}

// clientsOver is the default interval over which clients' rates are measured.
const clientsOver = time.Second

// devClients are the active clients of a device.
type devClients struct {
	Dev     string       `json:"dev"`
	Clients []clientRate `json:"clients"`
}

// clientRate describes a client and its traffic between two readings.
type clientRate struct {
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

// clientName formats a client's prefix.
func clientName(c shaper.Client) string {
	if !c.Client.IsValid() {
		return "no address"
	}
	return c.Client.String()
}

// clientRates computes the clients' rates between two readings. A client that is not in the first
// reading has no rate.
func clientRates(was, now []shaper.Client) []clientRate {
	type place struct{ direction, class string }
	before := map[place]shaper.Client{}
	for _, c := range was {
		before[place{c.Direction, c.Class}] = c
	}
	out := []clientRate{}
	for _, c := range now {
		r := clientRate{
			Direction: c.Direction, Group: c.Group, Client: clientName(c), Class: c.Class, Since: c.Since, Bytes: c.Bytes,
			Backlog: c.BacklogBytes, Delay: c.QueueDelay,
		}
		if b, ok := before[place{c.Direction, c.Class}]; ok && b.Client == c.Client && c.Passed >= b.Passed && c.Drops >= b.Drops {
			r.Rate, r.Drops = usage.RateOver(c.Passed-b.Passed, b.At, c.At), c.Drops-b.Drops
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b clientRate) int {
		return cmp.Or(cmp.Compare(b.Direction, a.Direction), cmp.Compare(a.Group, b.Group), cmp.Compare(b.Rate, a.Rate))
	})
	return out
}

func (a *app) showClients(states []shaper.State, over time.Duration, f format) error {
	if over == 0 {
		over = clientsOver
	}
	look := func() (out [][]shaper.Client, err error) {
		for _, s := range states {
			list, err := a.clients(s.Engine, s.Dev)
			if err != nil {
				return nil, err
			}
			out = append(out, list)
		}
		return out, nil
	}
	was, err := look()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(was, func(list []shaper.Client) bool { return len(list) > 0 }) {
		time.Sleep(over)
	}
	now, err := look()
	if err != nil {
		return err
	}
	all := []devClients{}
	for i, s := range states {
		all = append(all, devClients{s.Dev, clientRates(was[i], now[i])})
	}
	return a.print(f, all, func(w io.Writer) error { return clientsTable(w, all) })
}

func clientsTable(w io.Writer, all []devClients) error {
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

// errClientsOnServer is the error of show clients with --server.
var errClientsOnServer = errors.New("show clients does not support --server: run it on the host")
