package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/session"
	"headgate.dev/headgate/fabric/program"
)

// countInterval is how often the number of a switch's flows is compared, and auditInterval how often all of them are.
const countInterval, auditInterval = 10 * time.Second, 10 * time.Minute

// stepTimeout and, for each change, changeTimeout are how long a switch may take for one step of changes. Hardware switches make some hundred
// changes a second.
const stepTimeout, changeTimeout = 30 * time.Second, 5 * time.Millisecond

// maxResyncs is how many switches are read, or given more than fewChanges, at the same time. When a thousand switches connect at once and share one
// processor with the controller, none of them would otherwise have answered after stepTimeout, and all would begin again. A switch that does not answer
// keeps its place until its session ends.
const maxResyncs, fewChanges = 16, 500

// slots are places for work that is done at the same time.
type slots chan struct{}

func (s slots) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slots) give() { <-s }

// compute runs work for one switch that takes milliseconds of a processor and waits for nothing. One processor is left to messages: with a
// thousand at the same time a discovery frame would wait for its turn until it is too old, and links would seem to fail.
func (n *Network) compute(work func() error) error {
	if err := n.processors.take(n.ctx); err != nil {
		return err
	}
	defer n.processors.give()
	return work()
}

// had is what a switch has: read, or the program of a plan and what is not ours. The program is made again when it is needed,
// because a thousand switches have millions of flows.
type had struct {
	read    *program.State
	plan    *program.Connectivity
	foreign program.State
	flows   int // of ours in plan
	// fingerprint is what the switch keeps, 0 if it keeps none. With neither read nor plan it is all that is known.
	fingerprint uint32
}

// state is a part of what a switch has, if that is known: nil is all.
func (h had) state(s *attached, part *program.Part) (*program.State, error) {
	if h.plan == nil {
		return h.read, nil
	}
	p, err := h.plan.Part(s.id, part)
	if err != nil {
		return nil, err
	}
	return p.State(h.foreign), nil
}

// part returns which rules of a switch can differ between what it has and a plan. With flows of others all are compared, so that each of
// those that has the place of one of ours is named.
func (n *Network) part(s *attached, c *program.Connectivity, have had) *program.Part {
	if have.plan == nil || len(have.foreign.Flows) > 0 {
		return nil
	}
	return n.since(have.plan, c).Part(s.id)
}

// since returns what differs between two plans. Most switches go from the same one to the same other.
func (n *Network) since(before, after *program.Connectivity) *program.Difference {
	n.comparing.Lock()
	defer n.comparing.Unlock()
	if d := n.difference; d == nil || d.Before != before || d.After != after {
		n.difference = after.Since(before)
	}
	return n.difference
}

// synchronize brings a switch to each newer plan from the state that it has, until its channel ends.
func (n *Network) synchronize(s *attached, carries bool, have had) {
	n.awaitFirst(s, carries)
	again, audit, counted, mark := time.NewTimer(time.Hour), time.NewTimer(auditInterval), time.NewTimer(countInterval), time.NewTimer(time.Hour)
	defer again.Stop()
	defer audit.Stop()
	defer counted.Stop()
	defer mark.Stop()
	again.Stop()
	mark.Stop()
	for {
		select {
		case <-s.conn.Done():
			return
		case <-n.ctx.Done():
			return
		case <-s.wake:
		case <-again.C:
		case <-mark.C:
			have = n.mark(s, have)
			continue
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
		if err == nil && have.fingerprint == 0 {
			mark.Reset(markAfter)
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
	count, err := countOf(ctx, s.conn, ours)
	return err != nil || count == have.flows // with an error the session ends, or the switch cannot tell
}

// brought notes that a switch was brought to a plan. A newer one may have come into force meanwhile that does not concern the switch, so that nothing has woken
// it: 17 to 27 of a thousand switches, which were just counting their flows, never had the newest plan.
func (n *Network) brought(s *attached, version int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.done, s.problem = version, err; version < n.handed.version {
		s.wakeUp()
	}
	if err != nil && s.conn.Err() == nil {
		n.counters.Errors++
	}
}

// bring brings a switch to a plan from what it had, and returns what it has. One that is read or has many changes waits for its turn.
func (n *Network) bring(s *attached, c *program.Connectivity, have had) (had, error) {
	if have.plan == nil && have.fingerprint != 0 {
		if is := n.fingerprint(s.id, c); is.fingerprint == have.fingerprint && is.flows == have.flows {
			is.plan = c
			return is, nil
		}
		have = had{} // it is read
	}
	if have.plan != nil {
		has, err := n.change(s, c, have, fewChanges)
		if !errors.Is(err, errMany) {
			return has, err
		}
	}
	if err := n.resyncs.take(n.ctx); err != nil {
		return have, err
	}
	defer n.resyncs.give()
	has, err := n.change(s, c, have, math.MaxInt)
	n.trim(has.flows)
	return has, err
}

// manyFlows is after so many flows that were compared the memory that this took is given back, trimAfter later. The runtime would keep
// gigabytes of it for minutes.
const manyFlows, trimAfter = 200_000, 5 * time.Second

// trim gives memory back to the system when many flows have been compared.
func (n *Network) trim(flows int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.compared += flows
	if n.compared < manyFlows {
		return
	}
	if n.trimming == nil {
		n.trimming = time.AfterFunc(trimAfter, func() {
			n.mu.Lock()
			n.compared = 0
			n.mu.Unlock()
			debug.FreeOSMemory()
		})
		return
	}
	n.trimming.Reset(trimAfter)
}

// errMany is that of change for a switch with more changes than it may make.
var errMany = errors.New("many changes")

// change makes up to most changes at a switch.
func (n *Network) change(s *attached, c *program.Connectivity, have had, most int) (had, error) {
	if err := s.metering.lock(n.ctx); err != nil {
		return have, err
	}
	defer s.metering.unlock()
	if have.plan == nil && have.read == nil {
		state, err := n.resync(s)
		if err != nil {
			return had{}, fmt.Errorf("cannot read what it has: %w", err)
		}
		have.read, have.fingerprint = state, program.FingerprintOf(state.Flows)
	}
	var d difference
	if err := n.compute(func() (err error) {
		d, err = n.lacking(s, c, have, most)
		return err
	}); err != nil {
		return have, err
	}
	have.read = nil                                     // a thousand switches wait for answers at the same time
	if have.fingerprint != 0 && len(d.plan.Steps) > 0 { // from now on it has neither what the fingerprint says nor the plan
		d.plan.Steps[0] = append([]program.Change{{Message: program.Discovery(0).Mod(), Why: "see links"}}, d.plan.Steps[0]...)
		have.fingerprint = 0
	}
	var refused error
	for _, step := range d.plan.Steps {
		messages := make([]openflow.Message, len(step))
		for i, c := range step {
			messages[i] = c.Message
		}
		ctx, cancel := context.WithTimeout(n.ctx, stepTimeout+time.Duration(len(messages))*changeTimeout)
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
	var err error
	for _, c := range d.plan.Collisions {
		err = errors.Join(err, errors.New(c.String()))
	}
	s.metering.becomes(d.want, c.Circuits, s.id)
	return had{plan: c, foreign: d.foreign, fingerprint: have.fingerprint, flows: d.flows}, err
}

// difference is what a switch lacks of a plan.
type difference struct {
	plan    program.Plan
	want    program.Program // without flows
	foreign program.State
	flows   int // of ours that it then has
}

// lacking returns what a switch lacks of a plan, or errMany. What it takes for a switch with thousands of flows is garbage when it returns.
func (n *Network) lacking(s *attached, c *program.Connectivity, have had, most int) (d difference, err error) {
	part := n.part(s, c, have)
	if part.Size() > most {
		return d, errMany
	}
	if part.Empty() {
		return difference{foreign: have.foreign, flows: have.flows}, nil
	}
	if d.want, err = c.Part(s.id, part); err != nil {
		return d, err
	}
	n.limit(s, c, &d.want)
	state, err := have.state(s, part)
	if err != nil {
		return d, err
	}
	d.flows = len(d.want.Flows)
	if part != nil { // the others are right
		d.flows += have.flows - len(state.Flows)
	}
	var kept program.State // circuits of an earlier controller
	if c.Circuits == nil {
		without := state.WithoutCircuits()
		kept, state = state.Circuits(), &without
	}
	s.metering.correct(state, have.plan == nil)
	if d.plan, err = program.Diff(d.want, *state, program.Managed); err != nil {
		return d, err
	}
	count := 0
	for _, step := range d.plan.Steps {
		count += len(step)
	}
	if count > most {
		return d, errMany
	}
	d.foreign = state.Foreign(program.Managed).With(kept)
	d.flows += len(kept.Flows) - len(d.plan.Collisions)
	d.want.Flows = nil
	return d, nil
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

// resync reads what a switch has, and counts it.
func (n *Network) resync(s *attached) (*program.State, error) {
	n.mu.Lock()
	n.counters.Resyncs++
	n.mu.Unlock()
	return read(n.ctx, s.conn)
}

// read reads what a switch has.
func read(ctx context.Context, c *session.Conn) (*program.State, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	flows, err := flowsOf(ctx, c, openflow.AllFlows())
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

// ours selects the flows of programs.
var ours = openflow.FlowsWith(program.Managed.Cookie, program.Managed.CookieMask)

// flowsOf reads the flows of a switch that pass a filter.
func flowsOf(ctx context.Context, c *session.Conn, filter openflow.FlowFilter) ([]openflow.FlowStats, error) {
	reply, err := session.Ask[*openflow.FlowStatsReply](ctx, c, &openflow.FlowStatsRequest{FlowFilter: filter})
	if err != nil {
		return nil, err
	}
	return reply.Flows, nil
}

// countOf returns how many flows of a switch pass a filter.
func countOf(ctx context.Context, c *session.Conn, filter openflow.FlowFilter) (int, error) {
	sum, err := session.Ask[*openflow.Aggregate](ctx, c, &openflow.AggregateRequest{FlowFilter: filter})
	if err != nil {
		return 0, err
	}
	return int(sum.Flows), nil
}
