package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/lab/wire"
)

// Lab is a network that exists.
type Lab struct {
	Topology *Topology

	nodes map[string]*Node
	own   bool // created by this process, which removes it on Close

	// switches is nil without switches.
	switches  *ovs
	addresses *addressing

	// In the order of Topology.Links.
	backends []Backend
	devs     [][2]string  // names of the devices at both ends
	wires    []*wire.Link // nil for other backends
	seeds    []uint64

	traceDir string
	traces   []*os.File

	mu    sync.Mutex
	state *state
}

// Option changes how Up creates a lab.
type Option func(*Lab)

// Held marks a lab whose owner only holds it: Down ends the owner.
func Held() Option { return func(l *Lab) { l.state.Tenure = held } }

// Trace makes every emulated link write a release log for each direction, into LINK.forward.csv and
// LINK.back.csv in dir. The logs are complete after Close.
func Trace(dir string) Option { return func(l *Lab) { l.traceDir = dir } }

var uniqueCount atomic.Int32

// UniqueName returns a lab name that no other process uses: prefix, pid, count.
func UniqueName(prefix string) string {
	name := fmt.Sprintf("%s-%d", prefix, os.Getpid())
	if n := uniqueCount.Add(1); n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return name
}

// Up creates the network that t describes and waits until every link and address can be used. It first
// removes a lab of the same name whose owner was killed; a lab of that name that is in use is an
// error. After an error nothing is left.
func Up(ctx context.Context, t *Topology, options ...Option) (_ *Lab, err error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if err := t.findOpenVSwitch(schema); err != nil {
		return nil, err
	}
	s := &state{
		Name: t.Name, Owner: thisProcess(), Command: strings.Join(os.Args, " "),
		Tenure: owned, Made: time.Now(), Topology: t, Creating: true,
	}
	l := newLab(t, s)
	for _, o := range options {
		o(l)
	}
	if err := claim(s); err != nil {
		return nil, err
	}
	l.own = true
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	for _, spec := range t.Nodes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := l.makeNode(spec)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", spec.Name, err)
		}
		l.nodes[spec.Name] = n
	}
	if err := l.makeSwitches(); err != nil {
		return nil, fmt.Errorf("switches: %w", err)
	}
	devs, names := l.devs, t.LinkNames()
	for i := range t.Links {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		spec := t.link(i)
		l.seeds[i] = l.backends[i].seed(spec, names[i], t.Seed)
		if err := l.makeLink(i, spec, devs[i]); err != nil {
			return nil, fmt.Errorf("link %s - %s: %w", spec.Ends[0], spec.Ends[1], permitted(err))
		}
	}
	for _, n := range l.nodes {
		if err := l.addRoutes(n); err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	for _, n := range l.nodes {
		if err := n.waitUsable(ctx); err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	for i, spec := range t.Links {
		if err := l.introduce(i, spec, devs[i]); err != nil {
			return nil, fmt.Errorf("link %s - %s: %w", spec.Ends[0], spec.Ends[1], err)
		}
	}
	if err := l.startSwitches(ctx); err != nil {
		return nil, fmt.Errorf("switches: %w", err)
	}
	if err := l.record(func(s *state) { s.Creating = false }); err != nil {
		return nil, err
	}
	return l, nil
}

func newLab(t *Topology, s *state) *Lab {
	n := len(t.Links)
	return &Lab{
		Topology: t, nodes: map[string]*Node{}, addresses: t.addressing(), state: s,
		backends: t.Backends(), devs: t.devices(), wires: make([]*wire.Link, n), seeds: make([]uint64, n),
	}
}

// claim writes the lab's state file, unless a lab of that name is in use.
func claim(s *state) error {
	unlock, err := lockStates()
	if err != nil {
		return err
	}
	defer unlock()
	old, err := findState(s.Name)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	case old.Tenure == left:
		return configErrorf("lab %q exists already: take it down with \"headgate lab down %s\", or choose another name", s.Name, s.Name)
	case old.Owner.alive():
		return configErrorf("lab %q is in use by process %d (%s): choose another name", s.Name, old.Owner.PID, old.Command)
	default:
		if err := destroy(old); err != nil {
			return fmt.Errorf("cannot remove the earlier lab %q: %w", s.Name, err)
		}
	}
	return s.save()
}

// Attach enters a lab that another process created, to run programs in its nodes. Close then leaves
// the lab unchanged. A lab that is still being created is an error.
func Attach(name string) (*Lab, error) {
	if !labName.MatchString(name) {
		return nil, configErrorf("%q is not a valid lab name", name)
	}
	s, err := loadState(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, configErrorf("there is no lab %q: create it with \"headgate lab up\"", name)
	}
	if err != nil {
		return nil, err
	}
	if s.Creating && s.Owner.alive() {
		return nil, configErrorf("lab %q is still being created by process %d: try again when it is up", name, s.Owner.PID)
	}
	l := newLab(s.Topology, s)
	for _, spec := range s.Topology.Nodes {
		n, err := openNode(l, spec)
		if err != nil {
			l.Close()
			return nil, incomplete(name, err)
		}
		l.nodes[spec.Name] = n
	}
	if len(s.Topology.Switches) > 0 {
		n, err := openNode(l, NodeSpec{Name: switchesName})
		if err != nil {
			l.Close()
			return nil, incomplete(name, err)
		}
		l.switches = &ovs{node: n, dir: switchesDir(name)}
	}
	return l, nil
}

func incomplete(name string, err error) error {
	return fmt.Errorf("lab %q is not complete: %w; take it down with \"headgate lab down %s\"", name, err, name)
}

// Node returns the node of a name. It panics if there is none: the names are the caller's constants,
// unlike those of Host.
func (l *Lab) Node(name string) *Node {
	n, ok := l.nodes[name]
	if !ok {
		panic(fmt.Sprintf("lab %s has no node %q", l.Topology.Name, name))
	}
	return n
}

// Host returns a node as package traffic needs it; traffic.Start takes this method.
func (l *Lab) Host(name string) (traffic.Host, error) {
	n, ok := l.nodes[name]
	if !ok {
		return nil, configErrorf("there is no node %q in lab %q", name, l.Topology.Name)
	}
	return n, nil
}

// WireStats returns the counters of an emulated link, by direction (forward, back); ok is false for a
// kernel link and in an attached lab.
func (l *Lab) WireStats(link int) (stats [2]wire.Stats, ok bool) {
	w := l.wires[link]
	if w == nil {
		return stats, false
	}
	return w.Stats(), true
}

// NeedsHolder reports whether a link needs a process that carries its frames, so that the lab cannot
// exist without one.
func (t *Topology) NeedsHolder() bool { return slices.Contains(t.Backends(), Emulator) }

// Leave lets the lab stay when this process ends; Close then only releases it. It is an error if a
// link needs a process.
func (l *Lab) Leave() error {
	if slices.Contains(l.backends, Emulator) {
		return configErrorf("lab %q has emulated links, which end with this process", l.Topology.Name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Tenure = left
	if err := l.state.save(); err != nil {
		return err
	}
	l.own = false
	return nil
}

// Close removes the lab: processes, links, namespaces and last its state file. It returns when the
// kernel has released the namespaces, or after 10 s with an error that names their users. A second
// call does nothing.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	traced := l.closeWires()
	for _, n := range l.nodes {
		n.close()
	}
	if l.switches != nil {
		l.switches.node.close()
	}
	if !l.own {
		return traced
	}
	unlock, err := lockStates()
	if err != nil {
		return err
	}
	defer unlock()
	if err := destroy(l.state); err != nil {
		return errors.Join(err, traced)
	}
	l.own = false
	return traced
}
