package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// Switch is what a switch has, as it reports it.
type Switch struct {
	Flows  []openflow.FlowStats
	Groups []openflow.GroupDesc
	Ports  []openflow.Port
}

// Trace is the way of a frame, with all its copies.
type Trace struct {
	// Topology is the network in which it was followed.
	Topology *fabric.Topology
	// Hops are the passages of switches, those after fewer switches first. The first is where the frame arrives, and each other one is
	// the Next of a step before it.
	Hops []Hop
	// Cut is which bound ended the trace, such as "4096 hops", "" if all of it is in Hops.
	Cut string
}

// Hop is the passage of a switch.
type Hop struct {
	At    fabric.PortID // where the frame arrives
	Frame []byte        // as it arrives
	Steps []Step
	// Err is why the switch could not be asked, and then there are no steps, or ErrCut.
	Err error
}

// Step is a step in a switch, and where it leads.
type Step struct {
	pipeline.Step
	End End
	// Next is the index of the next hop for ToSwitch, Again and Loop, or 0.
	Next int
	// Hosts are those that get the frame, for Delivered.
	Hosts []fabric.Host
}

// End is where a step leads.
type End uint8

// Where steps lead.
const (
	Within       End = iota // to the next step
	ToSwitch                // over a link to the next hop
	Again                   // over a link to a hop that another copy of the frame has made in the same way
	Loop                    // over a link to a hop that has led here: the frame goes round
	Delivered               // to hosts
	NoHost                  // out of a port where no host is known that takes the frame
	Local                   // to the switch's own network stack
	ToController            // to the controllers
	Lost                    // nowhere: Why says it
	Unknown                 // only the switch knows it
	Limit                   // on, but a bound has ended the trace
)

// ends are the names in the API.
var ends = [...]string{"", "switch", "again", "loop", "delivered", "no-host", "local", "controller", "dropped", "unknown", "limit"}

// String is such as "delivered".
func (e End) String() string { return ends[e] }

// Bounds of a trace, chosen for Headgate. A loop and groups that copy a frame can make any number.
const (
	// MaxHops is how many hops a trace has: a broadcast passes each of 1,022 switches once.
	MaxHops = 4096
	// MaxSteps is how many steps all hops have, with the hosts that get the frame: a broadcast to 10,000 hosts of 1,000 switches has
	// 45,000. As many take 30 MB.
	MaxSteps = 100_000
	// MaxBytes is how many bytes the frames of the steps have, where they differ: 44,000 of the longest ones of Ethernet.
	MaxBytes = 64 << 20
)

// ErrCut is why a hop does not have all its steps: a bound has ended the trace.
var ErrCut = errors.New("not all steps are shown, because the trace is cut")

// maxKept is how many flows are kept for frames that pass a switch again. A switch beyond that is read again.
const maxKept = 200_000

// Run follows a frame that arrives at a port. read returns what a switch has; it is called only for switches that the frame
// reaches, and for several at a time. When ctx ends, the rest of the hops have its cause as their error.
func Run(ctx context.Context, t *fabric.Topology, at fabric.PortID, frame []byte, read func(context.Context, fabric.DPID) (Switch, error)) *Trace {
	r := &run{
		ctx: ctx, t: t, read: read, out: &Trace{Topology: t}, kept: map[fabric.DPID]*pipeline.Tables{}, hops: map[state]int{}, budget: pipeline.NewBudget(MaxSteps, MaxBytes),
	}
	r.add(at, frame)
	for from := 0; from < len(r.out.Hops); {
		to := len(r.out.Hops)
		r.pass(from, to)
		for n := from; n < to; n++ {
			if r.out.Hops[n].Err == ErrCut {
				r.cut(fmt.Sprintf("%d steps, or %d bytes of frames that differ", MaxSteps, MaxBytes))
			}
			for i := range r.out.Hops[n].Steps {
				r.follow(r.out.Hops[n].At.Switch, &r.out.Hops[n].Steps[i])
			}
		}
		from = to
	}
	markLoops(r.out.Hops)
	return r.out
}

// state identifies a hop: a switch does the same again with the same frame at the same port.
type state struct {
	at    fabric.PortID
	frame string
}

type run struct {
	ctx  context.Context
	t    *fabric.Topology
	read func(context.Context, fabric.DPID) (Switch, error)
	out  *Trace
	hops map[state]int
	// budget is of all hops.
	budget *pipeline.Budget

	mu    sync.Mutex // while several switches are read
	kept  map[fabric.DPID]*pipeline.Tables
	flows int // in kept
}

// add adds a hop, without its steps.
func (r *run) add(at fabric.PortID, frame []byte) (n int) {
	n = len(r.out.Hops)
	r.hops[state{at, string(frame)}] = n
	r.out.Hops = append(r.out.Hops, Hop{At: at, Frame: frame})
	return n
}

// cut notes the bound that ends the trace, if none has before.
func (r *run) cut(bound string) { r.out.Cut = cmp.Or(r.out.Cut, bound) }

// readers is how many switches are read at a time.
const readers = 16

// pass finds the steps of the hops from one to before another, each switch once.
func (r *run) pass(from, to int) {
	at := map[fabric.DPID][]*Hop{}
	for n := from; n < to; n++ {
		h := &r.out.Hops[n]
		at[h.At.Switch] = append(at[h.At.Switch], h)
	}
	var running sync.WaitGroup
	free := make(chan struct{}, readers)
	for id, hops := range at {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			tables, err := r.tables(id)
			for _, h := range hops {
				if h.Err = cmp.Or(err, context.Cause(r.ctx)); h.Err != nil {
					continue
				}
				steps, whole := tables.Trace(h.Frame, openflow.PortNo(h.At.Port), r.budget)
				if !whole {
					h.Err = ErrCut
				}
				for _, one := range steps {
					h.Steps = append(h.Steps, Step{Step: one})
				}
			}
		})
	}
	running.Wait()
}

// tables returns what a switch has.
func (r *run) tables(id fabric.DPID) (*pipeline.Tables, error) {
	r.mu.Lock()
	t := r.kept[id]
	r.mu.Unlock()
	if t != nil {
		return t, nil
	}
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	s, err := r.read(r.ctx, id)
	if err != nil {
		return nil, err
	}
	t = pipeline.NewTables(s.Flows, s.Groups, s.Ports)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flows+len(s.Flows) <= maxKept {
		r.kept[id] = t
		r.flows += len(s.Flows)
	}
	return t, nil
}

// follow finds where a step leads.
func (r *run) follow(id fabric.DPID, s *Step) {
	switch {
	case s.Kind == pipeline.Controller:
		s.End = ToController
	case s.Kind == pipeline.Skipped && s.Why == pipeline.Unknown:
		s.End = Unknown
	case s.Kind == pipeline.Skipped, s.Kind == pipeline.Dropped, s.Kind == pipeline.Output && s.Why != pipeline.None:
		s.End = Lost
	case s.Kind == pipeline.Output && s.Port == openflow.PortLocal:
		s.End = Local
	case s.Kind == pipeline.Output:
		r.leave(fabric.PortID{Switch: id, Port: fabric.PortNo(s.Port)}, s)
	}
}

// leave follows a frame that leaves a port.
func (r *run) leave(from fabric.PortID, s *Step) {
	l, ok := r.t.LinkFrom(from)
	if !ok {
		s.Hosts = takers(r.t.HostsAt(from), s.Frame)
		if s.End = NoHost; len(s.Hosts) > 0 {
			s.End = Delivered
		}
		if !r.budget.Spend(len(s.Hosts), 0) {
			s.Hosts = nil
			r.cut(fmt.Sprintf("%d steps and hosts", MaxSteps))
		}
		return
	}
	n, seen := r.hops[state{l.To, string(s.Frame)}]
	switch {
	case seen:
		s.End, s.Next = Again, n
	case len(r.out.Hops) >= MaxHops:
		s.End = Limit
		r.cut(fmt.Sprintf("%d hops", MaxHops))
	case r.budget.Spent():
		s.End = Limit
	default:
		s.End = ToSwitch
		s.Next = r.add(l.To, s.Frame)
	}
}

// markLoops changes Again to Loop where a step leads to a hop that has led to it. The search goes along each step once, and keeps
// the hops between the first one and the present one.
func markLoops(hops []Hop) {
	seen, above := make([]bool, len(hops)), make([]bool, len(hops))
	var visit func(n int)
	visit = func(n int) {
		seen[n], above[n] = true, true
		for i := range hops[n].Steps {
			s := &hops[n].Steps[i]
			switch {
			case s.End != ToSwitch && s.End != Again:
			case above[s.Next]:
				s.End = Loop
			case !seen[s.Next]:
				visit(s.Next)
			}
		}
		above[n] = false
	}
	if len(hops) > 0 {
		visit(0)
	}
}

// takers returns the hosts of a port that a frame is for.
func takers(at []fabric.Host, frame []byte) (all []fabric.Host) {
	f := ReadFrame(frame)
	for _, h := range at {
		if len(f.Labels) == 0 && h.VLAN == f.VLAN && (f.Dst.Group() || f.Dst == h.MAC) {
			all = append(all, h)
		}
	}
	return all
}
