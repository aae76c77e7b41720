package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/session"
	"headgate.dev/headgate/fabric/program"
)

// stepTimeout is how long a switch may take for one step of changes. Hardware switches make some hundred changes a second.
const stepTimeout = 30 * time.Second

// synchronize brings a switch to each newer plan from the state that it has, until its channel ends.
func (n *Network) synchronize(s *attached, state *program.State) {
	again := time.NewTimer(0)
	defer again.Stop()
	<-again.C
	for {
		select {
		case <-s.conn.Done():
			return
		case <-n.ctx.Done():
			return
		case <-s.wake:
		case <-again.C:
		}
		plan, version := n.planFor(s)
		if plan == nil {
			continue
		}
		next, err := n.bring(s, plan, state)
		state = next
		if err != nil && s.conn.Err() == nil {
			n.options.Log.Warn("a switch does not have what it should", "switch", s.id, "error", err)
			again.Reset(retry)
		}
		n.brought(s, version, err)
	}
}

func (n *Network) planFor(s *attached) (*program.Connectivity, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.plan == nil {
		return nil, 0
	}
	if _, ok := n.plan.Topology.Switch(s.id); !ok {
		return nil, 0 // the plan is older than the switch
	}
	return n.plan, n.version
}

func (n *Network) brought(s *attached, version int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.done, s.problem = version, err
}

// bring brings a switch to a plan from the state that it had, nil if that is unknown, and returns the state that it has.
func (n *Network) bring(s *attached, c *program.Connectivity, state *program.State) (*program.State, error) {
	want, err := c.Program(s.id)
	if err != nil {
		return state, err
	}
	if state == nil {
		if state, err = read(n.ctx, s.conn); err != nil {
			return nil, fmt.Errorf("cannot read what it has: %w", err)
		}
	}
	plan, err := program.Diff(want, *state, program.Managed)
	if err != nil {
		return state, err
	}
	for _, step := range plan.Steps {
		messages := make([]openflow.Message, len(step))
		for i, c := range step {
			messages[i] = c.Message
		}
		ctx, cancel := context.WithTimeout(n.ctx, stepTimeout)
		err := s.conn.Apply(ctx, messages...)
		cancel()
		if err != nil {
			return nil, explain(err, step) // what it has is read again
		}
	}
	for _, c := range plan.Collisions {
		err = errors.Join(err, errors.New(c.String()))
	}
	return want.State(*state, program.Managed), err
}

// explain adds to the errors of changes what they were for.
func explain(err error, step []program.Change) error {
	var refused *session.Refused
	if !errors.As(err, &refused) {
		return err
	}
	for _, c := range step {
		if c.Message == refused.Message {
			return fmt.Errorf("to %s: %w", c.Why, err)
		}
	}
	return err
}

// read reads what a switch has.
func read(ctx context.Context, c *session.Conn) (*program.State, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	var state program.State
	flows, err := c.Multipart(ctx, &openflow.FlowStatsRequest{FlowFilter: openflow.AllFlows()})
	if err != nil {
		return nil, err
	}
	if r, ok := flows.(*openflow.FlowStatsReply); ok {
		state.Flows = r.Flows
	}
	groups, err := c.Multipart(ctx, &openflow.GroupDescRequest{})
	if err != nil {
		return nil, err
	}
	if r, ok := groups.(*openflow.GroupDescReply); ok {
		state.Groups = r.Groups
	}
	meters, err := c.Multipart(ctx, &openflow.MeterConfigRequest{Meter: openflow.MeterAll})
	if err != nil {
		return nil, err
	}
	if r, ok := meters.(*openflow.MeterConfigReply); ok {
		state.Meters = r.Meters
	}
	return &state, nil
}
