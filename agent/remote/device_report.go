package remote

import (
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/usage"
)

// DeviceReport returns the report of a device's counters.
func DeviceReport(dev string, directions []usage.Direction) *agents.DeviceReport {
	d := &agents.DeviceReport{Dev: dev}
	for _, u := range directions {
		d.Directions = append(d.Directions, &agents.DirectionReport{Name: u.Name, LimitBps: uint64(u.Limit), ControlBytes: u.Control.Bytes})
		for _, g := range u.Groups {
			d.Names = append(d.Names, u.Key(g))
			d.GuaranteeBps = append(d.GuaranteeBps, uint64(g.Guarantee))
			d.Bytes = append(d.Bytes, g.Bytes)
			d.BacklogBytes = append(d.BacklogBytes, g.Backlog)
			d.Drops = append(d.Drops, g.Drops)
			d.Marks = append(d.Marks, g.Marks)
			d.QueueDelayNs = append(d.QueueDelayNs, uint64(g.Delay))
			d.QueuedNs = append(d.QueuedNs, uint64(g.QueuedFor))
			d.QueuedBytes = append(d.QueuedBytes, g.Queued)
			d.ReadAtNs = append(d.ReadAtNs, g.At.UnixNano())
		}
	}
	return d
}
