package service

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"headgate.dev/headgate/agent/record"
	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/usage"
)

// readings keeps the newest sample of the groups' counters, which it reports to the controllers, and
// writes one sample a second to the usage record.
type readings struct {
	record       *record.Record
	queue        chan reading // to the record
	lastRecorded time.Time    // the last recorded second

	mu            sync.Mutex
	states        []shaper.State
	at            time.Time
	reportedNames map[string]string // group names and guarantees that were reported, by device
}

// reading has the counters of the groups of all devices at one time.
type reading struct {
	at      time.Time
	devices map[string][]usage.Direction
}

func newReadings(r *record.Record) *readings {
	return &readings{record: r, queue: make(chan reading, 1), reportedNames: map[string]string{}}
}

// take takes a sample.
func (r *readings) take(at time.Time, states []shaper.State) {
	// Whether a guarantee was met is determined per whole second, also while a client watches at a
	// higher rate: in 100 ms a slow group sends one packet or none. A reading is taken slightly
	// before or after its second.
	if second := at.Round(100 * time.Millisecond).Truncate(time.Second); second != r.lastRecorded {
		r.lastRecorded = second
		select {
		case r.queue <- reading{at, directions(states)}:
		default: // the disk is slow; counters are cumulative, so the next reading includes this one
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states, r.at = states, at
}

// write writes readings to the record until the queue closes. A slow disk delays only this goroutine.
func (r *readings) write() {
	for now := range r.queue {
		if err := r.record.Add(now.at, now.devices); err != nil {
			slog.Warn("cannot write usage record", "error", err)
		}
	}
}

// newest returns the newest sample.
func (r *readings) newest() []shaper.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.states
}

// forgetReported causes the next report to have all names again, as on a new connection.
func (r *readings) forgetReported() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.reportedNames)
}

// report returns the newest reading. It has the names and guarantees of a device's groups only if they
// changed since the last report.
func (r *readings) report() *agents.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &agents.Report{AtNs: r.at.UnixNano()}
	for _, s := range r.states {
		d := remote.DeviceReport(s.Dev, s.Usage())
		if said := fmt.Sprint(d.Names, d.GuaranteeBps); r.reportedNames[s.Dev] == said {
			d.Names, d.GuaranteeBps = nil, nil
		} else {
			r.reportedNames[s.Dev] = said
		}
		out.Devices = append(out.Devices, d)
	}
	return out
}

// usage answers a query of usage records.
func (r *readings) usage(_ context.Context, q *agents.UsageQuery, answer func(*agents.UsageAnswer)) error {
	out := &agents.UsageAnswer{Id: q.Id}
	all, err := r.record.Usage(time.Unix(q.Since, 0), time.Unix(q.Until, 0))
	if err != nil {
		slog.Warn("cannot read usage record", "error", err)
	}
	for dev, groups := range all {
		for name, u := range groups {
			out.Rows = append(out.Rows, &agents.Usage{
				Dev: dev, Group: name, Seconds: uint64(u.Seconds + 0.5), OfferedBytes: u.Offered, DeliveredBytes: u.Delivered,
				GuaranteedBytes: u.Guaranteed, BorrowedBytes: u.Borrowed, LentBytes: u.Lent, Drops: u.Drops, Marks: u.Marks, UnmetSeconds: uint64(u.Unmet + 0.5),
			})
		}
	}
	answer(out)
	return nil
}
