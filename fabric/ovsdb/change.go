package ovsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Applied says what a change of the configuration has done.
type Applied struct {
	Changed bool  // false if the configuration was the desired one already
	NextCfg int64 // for WaitApplied
}

// attempts bounds how often a change is computed from a new state, because another client changed it in between.
const attempts = 4

// apply reads the state, computes what changes it to the desired one and executes that, until nothing is left to
// change. With dryRun it only computes. What the server rejects is a *serverError.
func (s *Session) apply(ctx context.Context, action string, dryRun bool, compute func(tables) (*plan, error)) (changes []Change, done Applied, err error) {
	for range attempts {
		t, readErr := s.readTables(ctx)
		if readErr != nil {
			return changes, done, readErr
		}
		p, computeErr := compute(t)
		if computeErr != nil {
			return changes, done, fmt.Errorf("cannot %s on the OVSDB server %s: %w", action, s.address, computeErr)
		}
		if dryRun {
			return p.changes, Applied{NextCfg: t.root().nextCfg}, nil
		}
		if len(p.operations) == 0 {
			if !done.Changed {
				done.NextCfg = t.root().nextCfg
			}
			return changes, done, nil
		}
		var next int64
		next, err = s.change(ctx, action, p.operations)
		switch errorCode(err) {
		case timedOut, constraintViolation, referentialIntegrity: // perhaps another client was faster
			continue
		}
		if err != nil {
			return changes, done, err
		}
		changes, done = p.changes, Applied{Changed: true, NextCfg: next}
	}
	if err == nil {
		err = fmt.Errorf("cannot %s on the OVSDB server %s: another program changes it at the same time: stop that program", action, s.address)
	}
	return changes, done, err
}

// change executes operations as one change of the configuration, with a comment in the database's log
// (ovsdb-tool show-log), and returns the next_cfg that it made.
func (s *Session) change(ctx context.Context, action string, operations []operation) (nextCfg int64, err error) {
	results, err := s.transact(ctx, append(operations,
		mutate(database, everyRow, "next_cfg", "+=", 1),
		operation{"op": "comment", "comment": "headgate: " + action},
		operation{"op": "select", "table": database, "where": everyRow, "columns": []string{"next_cfg"}})...)
	if err != nil {
		return 0, err
	}
	rows := results[len(results)-1].Rows
	if len(rows) != 1 || json.Unmarshal(rows[0]["next_cfg"], &nextCfg) != nil {
		return 0, s.name("transact", errors.New("the server sent no next_cfg"))
	}
	return nextCfg, nil
}
