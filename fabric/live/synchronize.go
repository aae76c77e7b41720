package live

import (
	"cmp"
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
	n.awaitFirst(s, state)
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

func (n *Network) brought(s *attached, version int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.done, s.problem = version, err
	if err != nil && s.conn.Err() == nil {
		n.counters.Errors++
	}
}

// bring brings a switch to a plan from what it had, and returns what it has.
func (n *Network) bring(s *attached, c *program.Connectivity, have had) (had, error) {
	want, err := c.Program(s.id)
	if err != nil {
		return have, err
	}
	if err := s.metering.lock(n.ctx); err != nil {
		return have, err
	}
	defer s.metering.unlock()
	n.limit(s, c, &want)
	state, err := have.state(s)
	if state == nil && err == nil {
		n.mu.Lock()
		n.counters.Resyncs++
		n.mu.Unlock()
		state, err = read(n.ctx, s.conn)
	}
	if err != nil {
		return had{}, fmt.Errorf("cannot read what it has: %w", err)
	}
	var kept program.State // circuits of an earlier controller
	if c.Circuits == nil {
		rest := state.WithoutCircuits()
		kept, state = state.Circuits(), &rest
	}
	s.metering.correct(state, have.plan == nil)
	plan, err := program.Diff(want, *state, program.Managed)
	if err != nil {
		return have, err
	}
	var refused error
	for _, step := range plan.Steps {
		messages := make([]openflow.Message, len(step))
		for i, c := range step {
			messages[i] = c.Message
		}
		ctx, cancel := context.WithTimeout(n.ctx, stepTimeout)
		err := n.applyStep(ctx, s, messages)
		cancel()
		if err != nil {
			// The other steps are made all the same: a deletion can free the space that was missing. Later errors mostly
			// follow from the first.
			refused = cmp.Or(refused, explain(err, step))
			if s.conn.Err() != nil || !isRefusal(err) {
				return had{}, refused
			}
		}
	}
	if refused != nil {
		return had{}, refused // what it has is read again
	}
	for _, c := range plan.Collisions {
		err = errors.Join(err, errors.New(c.String()))
	}
	s.metering.becomes(want, c.Circuits, s.id)
	return had{plan: c, foreign: state.Foreign(program.Managed).With(kept), flows: len(want.Flows) - len(plan.Collisions) + len(kept.Flows)}, err
}

// explain adds to the first error of changes what the change was for, and to that how many more there are.
func explain(err error, step []program.Change) error {
	var refused *session.Refused
	if !errors.As(err, &refused) {
		return err
	}
	text := ""
	if all, ok := err.(interface{ Unwrap() []error }); ok && len(all.Unwrap()) > 1 {
		text = fmt.Sprintf(" (and %d more changes)", len(all.Unwrap())-1)
	}
	for _, c := range step {
		if c.Message == refused.Message {
			return fmt.Errorf("to %s: %w%s", c.Why, refused, text)
		}
	}
	return err
}

func isRefusal(err error) bool {
	var refused *session.Refused
	return errors.As(err, &refused)
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
	if err = without(err); err != nil {
		return nil, err
	}
	meters, err := session.Ask[*openflow.MeterConfigReply](ctx, c, &openflow.MeterConfigRequest{Meter: openflow.MeterAll})
	if err = without(err); err != nil {
		return nil, err
	}
	state := &program.State{Flows: flows}
	if groups != nil {
		state.Groups = groups.Groups
	}
	if meters != nil {
		state.Meters = meters.Meters
	}
	return state, nil
}

// without returns nil for the error of a switch that has no groups, or no meters.
func without(err error) error {
	if isRefusal(err) {
		return nil
	}
	return err
}

// flowsOf reads all flows of a switch.
func flowsOf(ctx context.Context, c *session.Conn) ([]openflow.FlowStats, error) {
	reply, err := session.Ask[*openflow.FlowStatsReply](ctx, c, &openflow.FlowStatsRequest{FlowFilter: openflow.AllFlows()})
	if err != nil {
		return nil, err
	}
	return reply.Flows, nil
}
