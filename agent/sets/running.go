package sets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"headgate/collective"
	"headgate/collective/host"
	"headgate/collective/sockops"
)

// running is the sets at work.
type running struct {
	table  *sockops.Table
	host   *host.Host
	server *host.Server
	stop   func()
	// refused is how many connections an earlier agent had no room for.
	refused uint64
}

func begin(policies []collective.Policy) (*running, error) {
	table, err := sockops.Open(Instance, most)
	if errors.Is(err, sockops.ErrTaken) {
		return nil, fmt.Errorf("another program runs sets as the instance %s on this machine: end it", Instance)
	}
	if err != nil {
		return nil, err
	}
	r := &running{table: table}
	r.refused, err = table.Refused()
	if err == nil {
		r.host, err = host.New(table, policies, false)
	}
	if err != nil {
		table.Close()
		return nil, err
	}
	if r.server, err = r.host.Serve(Instance); err != nil {
		err = errors.Join(err, r.host.Close())
		table.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Nothing is shown, so that nothing fails.
		_ = r.host.Run(ctx, time.Hour, func([]host.State) error { return nil })
	}()
	r.stop = func() { cancel(); <-done }
	return r, nil
}

// end lets all connections go, and takes away what was attached.
func (r *running) end() {
	r.stop()
	if err := errors.Join(r.server.Close(), r.host.Close()); err != nil {
		slog.Warn("what was attached for sets of connections stays in part", "error", err)
	}
	r.table.Close()
}

// leave lets all connections go, and leaves what is attached to the next agent.
func (r *running) leave() {
	r.stop()
	r.server.Close()
	r.table.Lift()
	r.table.Close()
}

// local is what the programs of this host run.
type local struct {
	sets        map[string]string        // by name: the program
	connections map[collective.ID]string // which set of which program has it
}

// ask asks them all. One that does not answer has no part in it.
func ask() local {
	out := local{map[string]string{}, map[collective.ID]string{}}
	for _, name := range slices.Sorted(slices.Values(host.Running())) {
		if name == Instance {
			continue
		}
		states, err := host.Ask(name)
		if err != nil {
			continue
		}
		for _, s := range states {
			out.sets[s.Set] = name
			for _, c := range s.Connections {
				out.connections[c.ID] = fmt.Sprintf("the set %s of the program %s of this host", s.Set, name)
			}
		}
	}
	return out
}

// trouble is what is not right about sets that run.
func (r *running) trouble(local local) map[string]string {
	out := map[string]string{}
	states, err := r.server.States()
	if err != nil {
		return out // it is busy: the next time will tell
	}
	refused, err := r.table.Refused()
	for _, s := range states {
		if err == nil && refused > r.refused {
			out[s.Set] = fmt.Sprintf("connections were left alone, because there is room for %d", r.table.Size())
		}
		for _, c := range s.Connections {
			if other, too := local.connections[c.ID]; too {
				out[s.Set] = fmt.Sprintf("%s to %s is in %s, too, and both hold it: choose it in one of them", c.Local, c.Remote, other)
			}
		}
	}
	return out
}
