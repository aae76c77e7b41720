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

// countInterval is how often the number of a switch's flows is compared, and auditInterval how often all of them are.
const countInterval, auditInterval = 10 * time.Second, 10 * time.Minute

// stepTimeout is how long a switch may take for one step of changes. Hardware switches make some hundred changes a second.
const stepTimeout = 30 * time.Second

// had is what a switch has: read, or the program of a plan and what is not ours. The program is made again when it is needed,
// because a thousand switches have millions of flows.
type had struct {
	read    *program.State
	plan    *program.Connectivity
	foreign program.State
	flows   int // of ours in plan
}

func (h had) state(s *attached) (*program.State, error) {
	if h.plan == nil {
		return h.read, nil
	}
	p, err := h.plan.Program(s.id)
	if err != nil {
		return nil, err
	}
	return p.State(h.foreign), nil
}

// synchronize brings a switch to each newer plan from the state that it has, until its channel ends.
func (n *Network) synchronize(s *attached, state *program.State) {
	have := had{read: state}
	again, audit, counted := time.NewTimer(time.Hour), time.NewTimer(auditInterval), time.NewTimer(countInterval)
	defer again.Stop()
	defer audit.Stop()
	defer counted.Stop()
	again.Stop()
	for {
		select {
		case <-s.conn.Done():
			return
		case <-n.ctx.Done():
			return
		case <-s.wake:
		case <-again.C:
		case <-audit.C:
			audit.Reset(auditInterval)
			have = had{}
		case <-counted.C:
			counted.Reset(countInterval)
			if n.complete(s, have) {
				continue
			}
			n.options.Log.Warn("a switch has not as many flows as it was given", "switch", s.id)
			have = had{}
		}
		plan, version := n.planFor(s)
		if plan == nil {
			continue
		}
		var err error
		have, err = n.bring(s, plan, have)
		if err != nil && s.conn.Err() == nil {
			n.options.Log.Warn("a switch does not have what it should", "switch", s.id, "error", err)
			again.Reset(retry)
		}
		n.brought(s, version, err)
	}
}

// complete reports whether a switch has as many flows of ours as it was given.
func (n *Network) complete(s *attached, have had) bool {
	if have.plan == nil {
		return true // it is read again in any case
	}
	ctx, cancel := context.WithTimeout(n.ctx, stepTimeout)
	defer cancel()
	filter := openflow.AllFlows()
	filter.Cookie, filter.CookieMask = program.Managed.Cookie, program.Managed.CookieMask
	sum, err := session.Ask[*openflow.Aggregate](ctx, s.conn, &openflow.AggregateRequest{FlowFilter: filter})
	return err != nil || int(sum.Flows) == have.flows // with an error the session ends, or the switch cannot tell
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

// bring brings a switch to a plan from what it had, and returns what it has.
func (n *Network) bring(s *attached, c *program.Connectivity, have had) (had, error) {
	want, err := c.Program(s.id)
	if err != nil {
		return have, err
	}
	state, err := have.state(s)
	if state == nil && err == nil {
		state, err = read(n.ctx, s.conn)
	}
	if err != nil {
		return had{}, fmt.Errorf("cannot read what it has: %w", err)
	}
	plan, err := program.Diff(want, *state, program.Managed)
	if err != nil {
		return have, err
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
			return had{}, explain(err, step) // what it has is read again
		}
	}
	for _, c := range plan.Collisions {
		err = errors.Join(err, errors.New(c.String()))
	}
	return had{plan: c, foreign: state.Foreign(program.Managed), flows: len(want.Flows) - len(plan.Collisions)}, err
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
	flows, err := flowsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	groups, err := session.Ask[*openflow.GroupDescReply](ctx, c, &openflow.GroupDescRequest{})
	if err != nil {
		return nil, err
	}
	meters, err := session.Ask[*openflow.MeterConfigReply](ctx, c, &openflow.MeterConfigRequest{Meter: openflow.MeterAll})
	if err != nil {
		return nil, err
	}
	return &program.State{Flows: flows, Groups: groups.Groups, Meters: meters.Meters}, nil
}

// flowsOf reads all flows of a switch.
func flowsOf(ctx context.Context, c *session.Conn) ([]openflow.FlowStats, error) {
	reply, err := session.Ask[*openflow.FlowStatsReply](ctx, c, &openflow.FlowStatsRequest{FlowFilter: openflow.AllFlows()})
	if err != nil {
		return nil, err
	}
	return reply.Flows, nil
}
