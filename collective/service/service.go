// Package service joins what a program that controls connection sets has: the table in the kernel, the control loop
// over it, the socket for queries, and metrics. It decides nothing itself: package host has the loop.
package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/metrics"
)

// Options are what the program needs of its user.
type Options struct {
	Policies []collective.Policy
	// Instance is the name of the program's objects in the kernel and of its socket.
	Instance string
	// MaxConnections is the capacity of the table.
	MaxConnections int
	// Interval is the interval of Show, which gets the state of the sets.
	Interval time.Duration
	Show     func([]host.State) error
	// Metrics is the address at which metrics are served; "" disables them.
	Metrics string
	// DryRun is set if no caps are to be set.
	DryRun bool
	// Note tells the user what is no state of a set and no error.
	Note func(format string, args ...any)
}

// ErrPermission is the error of a user who may not load eBPF programs.
var ErrPermission = errors.New("cannot load eBPF programs")

// Run runs the sets until ctx ends. The error is sockops.ErrInUse if another program has the instance.
func Run(ctx context.Context, o Options) (err error) {
	var listener net.Listener
	if o.Metrics != "" {
		// Listen before anything is loaded into the kernel, because the address may be in use.
		if listener, err = metrics.Listen(o.Metrics); err != nil {
			return err
		}
		defer listener.Close()
	}
	table, err := sockops.Open(o.Instance, o.MaxConnections)
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: %w", ErrPermission, err)
	}
	if err != nil {
		return err
	}
	defer table.Close()
	before, err := table.RefusedWhenFull()
	if err != nil {
		return err
	}
	refused := refusals{before: before}
	h, err := host.New(table, o.Policies, o.DryRun)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	server, err := h.Serve(o.Instance)
	if err != nil {
		return err
	}
	defer server.Close()
	if listener != nil {
		defer metrics.Serve(listener, metrics.NewCollective(server.States))()
	}
	room := table.Size()
	if room != o.MaxConnections {
		o.Note("the table left by a killed program has a capacity of %s: stop this program and start it again for --connections %d", text.Count(room, "connection"), o.MaxConnections)
	}
	what := "all caps are removed at exit"
	if o.DryRun {
		what = "--dry-run: the caps shown are not set"
	}
	o.Note("watching %s; %s", text.Count(len(o.Policies), "set"), what)
	for _, s := range h.State() {
		if s.Waiting {
			o.Note("set %s is waiting: its cgroup or unit does not exist yet", s.Set)
		}
	}
	return h.Run(ctx, o.Interval, func(states []host.State) error {
		if all, err := table.RefusedWhenFull(); err == nil {
			if n, news := refused.count(all); news {
				o.Note("not watched: %s above the limit of %d (--connections)", text.Count(int(n), "connection"), room)
			}
		}
		return o.Show(states)
	})
}

// refusals tracks the connections that were refused because the table was full. The kernel table counts
// them since its creation. before is the count when this program started. reported is the last reported number of
// refusals since then.
type refusals struct{ before, reported uint64 }

// count returns the refusals since the program's start, and whether to report them. New refusals may
// come every second, so the number is reported again only when it has doubled.
func (r *refusals) count(all uint64) (n uint64, news bool) {
	n = all - r.before
	if n == 0 || n < 2*r.reported {
		return n, false
	}
	r.reported = n
	return n, true
}
