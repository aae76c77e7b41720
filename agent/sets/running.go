package sets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/collective/sockops"
)

// running is the state of the running sets.
type running struct {
	table  *sockops.Table
	host   *host.Host
	server *host.Server
	stop   func()
	// refused is the number of connections that a previous agent could not add to the full table.
	refused uint64
}

func startSets(policies []collective.Policy) (*running, error) {
	table, err := sockops.Open(Instance, tableSize)
	if errors.Is(err, sockops.ErrInUse) {
		return nil, fmt.Errorf("another program runs connection sets as instance %s on this machine: stop it", Instance)
	}
	if err != nil {
		return nil, err
	}
	r := &running{table: table}
	r.refused, err = table.RefusedWhenFull()
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
		// The display function does nothing, so Run returns no error.
		_ = r.host.Run(ctx, time.Hour, func([]host.State) error { return nil })
	}()
	r.stop = func() { cancel(); <-done }
	return r, nil
}

// end releases all connections, detaches the programs, and forgets what was learned, because no set is left.
func (r *running) end() {
	r.stop()
	if err := errors.Join(r.server.Close(), r.host.Close(), host.ForgetNeeds(Instance)); err != nil {
		slog.Warn("cannot remove everything of connection sets", "error", err)
	}
	r.table.Close()
}

// releaseKeepAttached releases all connections and keeps the programs attached for the next agent.
func (r *running) releaseKeepAttached() {
	r.stop()
	r.server.Close()
	r.table.Lift()
	r.table.Close()
}

// local describes the sets that programs of this host run.
type local struct {
	sets        map[string]string        // by set: the program
	connections map[collective.ID]string // by connection: a description of its set and program
}

// queryLocal queries these programs. A program that does not answer is ignored.
func queryLocal() local {
	out := local{map[string]string{}, map[collective.ID]string{}}
	for _, name := range slices.Sorted(slices.Values(host.Running())) {
		if name == Instance {
			continue
		}
		states, err := host.QueryStates(name)
		if err != nil {
			continue
		}
		for _, s := range states {
			out.sets[s.Set] = name
			for _, c := range s.Connections {
				out.connections[c.ID] = fmt.Sprintf("set %s of program %s on this host", s.Set, name)
			}
		}
	}
	return out
}

// problems returns the problems of running sets, by set.
func (r *running) problems(local local) map[string]string {
	out := map[string]string{}
	states, err := r.server.States()
	if err != nil {
		return out // the server is busy: the next call returns the problems
	}
	refused, err := r.table.RefusedWhenFull()
	for _, s := range states {
		if err == nil && refused > r.refused {
			out[s.Set] = fmt.Sprintf("table of connections is full (%d entries): some connections are not controlled", r.table.Size())
		}
		for _, c := range s.Connections {
			if other, too := local.connections[c.ID]; too {
				out[s.Set] = fmt.Sprintf("connection %s to %s is also in %s, and both cap it: select it in one of them only", c.Local, c.Remote, other)
			}
		}
	}
	return out
}
