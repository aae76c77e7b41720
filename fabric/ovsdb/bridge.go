package ovsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// BridgeConfig is the desired state of a bridge. A field of its zero value leaves what the bridge has, and so do
// columns that have no field here, such as external_ids.
type BridgeConfig struct {
	Name              string // of the bridge, and of its own port
	DatapathType      string // "system" or "netdev"
	FailMode          FailMode
	Protocols         []string // all versions of OpenFlow that it may use, such as "OpenFlow13"
	DatapathID        uint64   // written as other_config:datapath-id
	Controllers       []string // targets that it must have, such as "ssl:192.0.2.1:6653"
	RemoveControllers []string // targets that it must not have
	Ports             []PortConfig
	RemovePorts       []string // names of ports that it must not have
}

// PortConfig is the desired state of a port with one interface, which has the name of the port. A field of its zero
// value leaves what the interface has.
type PortConfig struct {
	Name    string
	Type    string            // of the interface: "internal", "patch", ...; a new interface without it is a network device
	Options map[string]string // keys that the interface must have, such as "peer" of a patch port
	OFPort  uint16            // number of the OpenFlow port to request, 1 to 65279
}

// Applied says what a change of the configuration has done.
type Applied struct {
	Changed bool  // false if the configuration was the desired one already
	NextCfg int64 // for WaitApplied
}

// attempts bounds how often a change is computed from a new state, because another client changed it in between.
const attempts = 4

// EnsureBridge makes the bridge as described, and creates it if it does not exist. It writes only differences. It
// returns after a reading showed the desired state. What the server rejects is an *Error, and what contradicts itself
// or other bridges is refused before anything is written.
func (s *Session) EnsureBridge(ctx context.Context, want BridgeConfig) (Applied, error) {
	if err := want.check(); err != nil {
		return Applied{}, err
	}
	return s.ensure(ctx, "configure the bridge "+want.Name, want.operations)
}

// DeleteBridge deletes a bridge with its ports, if it exists.
func (s *Session) DeleteBridge(ctx context.Context, name string) (Applied, error) {
	return s.ensure(ctx, "delete the bridge "+name, func(t tables) ([]operation, error) {
		if id, _ := t.bridgeNamed(name); id != "" {
			return []operation{mutate(database, everyRow, "bridges", "delete", Set[UUID]{id})}, nil
		}
		return nil, nil
	})
}

// ensure reads the state, computes the operations that it needs and executes them, until it needs none.
func (s *Session) ensure(ctx context.Context, action string, compute func(tables) ([]operation, error)) (done Applied, err error) {
	for range attempts {
		t, readErr := s.readTables(ctx)
		if readErr != nil {
			return done, readErr
		}
		operations, computeErr := compute(t)
		if computeErr != nil {
			return done, fmt.Errorf("cannot %s on the OVSDB server %s: %w", action, s.address, computeErr)
		}
		if len(operations) == 0 {
			if !done.Changed {
				done.NextCfg = t.root().nextCfg
			}
			return done, nil
		}
		var next int64
		next, err = s.change(ctx, action, operations)
		switch errorCode(err) {
		case TimedOut, ConstraintViolation, ReferentialIntegrity: // perhaps another client was faster
			continue
		}
		if err != nil {
			return done, err
		}
		done = Applied{Changed: true, NextCfg: next}
	}
	if err == nil {
		err = fmt.Errorf("cannot %s on the OVSDB server %s: another program changes it at the same time: stop that program", action, s.address)
	}
	return done, err
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

// check returns an error for a configuration that contradicts itself.
func (b BridgeConfig) check() error {
	if b.Name == "" {
		return errors.New("a bridge has no name")
	}
	var ports []string
	for _, p := range b.Ports {
		ports = append(ports, p.Name)
	}
	for what, lists := range map[string][2][]string{"port": {ports, b.RemovePorts}, "controller": {b.Controllers, b.RemoveControllers}} {
		for i, name := range lists[0] {
			switch {
			case name == "":
				return fmt.Errorf("a %s of the bridge %s has no name", what, b.Name)
			case slices.Contains(lists[0][:i], name):
				return fmt.Errorf("the %s %s of the bridge %s is listed twice", what, name, b.Name)
			case slices.Contains(lists[1], name):
				return fmt.Errorf("the %s %s of the bridge %s is both desired and listed for removal", what, name, b.Name)
			}
		}
	}
	if slices.Contains(b.RemovePorts, b.Name) {
		return fmt.Errorf("the port %s is the own port of the bridge: delete the bridge instead", b.Name)
	}
	return nil
}
