package ovsdb

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Running reports whether an ovs-vswitchd serves the database. A running one holds the lock "ovs_vswitchd"
// (vswitchd/bridge.c, bridge_init): if the session gets it, there is none. The session returns it at once (RFC 7047,
// sections 4.1.8 and 4.1.10).
func (s *Session) Running(ctx context.Context) (bool, error) {
	const lock = "ovs_vswitchd"
	var got struct {
		Locked bool `json:"locked"`
	}
	if err := s.call(ctx, "lock", &got, lock); err != nil {
		return false, err
	}
	return !got.Locked, s.call(ctx, "unlock", nil, lock)
}

// WaitApplied waits until ovs-vswitchd has applied the configuration of a NextCfg, as ovs-vsctl does without --no-wait.
// Interface.Error then says what it could not apply. The server waits, until ctx ends.
func (s *Session) WaitApplied(ctx context.Context, nextCfg int64) error {
	_, err := s.transact(ctx, operation{"op": "wait", "table": database, "columns": []string{"cur_cfg"},
		"where": []any{[]any{"cur_cfg", "<", nextCfg}}, "until": "==", "rows": []any{}}) // no row has less
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("ovs-vswitchd has not applied configuration %d of the OVSDB server %s: check that it is running: %w", nextCfg, s.address, ctx.Err())
	}
	return err
}

// connectedPoll is the time between readings of WaitConnected. ovs-vswitchd writes is_connected every 5 s.
const connectedPoll = 200 * time.Millisecond

// WaitConnected waits until bridges are connected to all their controllers, or until ctx ends, which is no error. It
// returns the last state.
func (s *Session) WaitConnected(ctx context.Context, bridges []string) (last *Snapshot, err error) {
	for {
		state, err := s.Snapshot(ctx)
		if err != nil && ctx.Err() != nil && last != nil {
			return last, nil
		}
		if err != nil {
			return nil, err
		}
		last = state
		all := true
		for _, name := range bridges {
			if b := last.Bridge(name); b != nil {
				all = all && !slices.ContainsFunc(b.Controllers, func(c Controller) bool { return !c.Service && !c.Connected })
			}
		}
		if all {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, nil
		case <-time.After(connectedPoll):
		}
	}
}
