package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/lab/traffic"
	"headgate/lab/wire"
)

// Lab is a network that exists.
type Lab struct {
	Topology *Topology

	nodes map[string]*Node
	wires []*wire.Link // emulated links, by their place in Topology.Links; nil for veth
	own   bool         // made by this process, which removes it on Close

	mu    sync.Mutex
	state *state
}

// Option changes how Up makes a lab.
type Option func(*state)

// Held marks a lab whose owner does nothing but hold it: Down ends the owner.
func Held() Option { return func(s *state) { s.Tenure = held } }

var uniqueCount atomic.Int32

// UniqueName is a lab name that no other process uses: prefix, pid, count.
func UniqueName(prefix string) string {
	name := fmt.Sprintf("%s-%d", prefix, os.Getpid())
	if n := uniqueCount.Add(1); n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return name
}

// Up makes the network that t describes and waits until every link and address
// can be used. What a killed owner left under the same name is removed first; a
// lab of that name that is in use is an error. On an error nothing is left.
func Up(ctx context.Context, t *Topology, options ...Option) (_ *Lab, err error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	s := &state{
		Name: t.Name, Owner: thisProcess(), Command: strings.Join(os.Args, " "),
		Tenure: owned, Made: time.Now(), Topology: t,
	}
	for _, o := range options {
		o(s)
	}
	if err := claim(s); err != nil {
		return nil, err
	}
	l := &Lab{Topology: t, nodes: map[string]*Node{}, state: s, own: true, wires: make([]*wire.Link, len(t.Links))}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	for _, spec := range t.Nodes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := l.makeNode(spec); err != nil {
			return nil, fmt.Errorf("node %s: %w", spec.Name, err)
		}
	}
	devs := t.devices()
	for i, spec := range t.Links {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
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
	return l, nil
}

// claim writes the lab's file, unless a lab of that name is in use.
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
		return configErrorf("there is a lab %q already: take it down with \"headgate lab down %s\", or choose another name", s.Name, s.Name)
	case old.Owner.alive():
		return configErrorf("a lab %q is in use by process %d (%s): choose another name", s.Name, old.Owner.PID, old.Command)
	default:
		if err := destroy(old); err != nil {
			return fmt.Errorf("remove what is left of an earlier lab %q: %w", s.Name, err)
		}
	}
	return s.save()
}

// Attach enters a lab that another process made, to run things in its nodes.
// Close then leaves it as it is.
func Attach(name string) (*Lab, error) {
	if !labName.MatchString(name) {
		return nil, configErrorf("%q is not a name for a lab", name)
	}
	s, err := loadState(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, configErrorf("there is no lab %q: make it with \"headgate lab up\"", name)
	}
	if err != nil {
		return nil, err
	}
	l := &Lab{Topology: s.Topology, nodes: map[string]*Node{}, state: s, wires: make([]*wire.Link, len(s.Topology.Links))}
	for _, spec := range s.Topology.Nodes {
		n, err := openNode(l, spec)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("lab %q is not complete: %w; take it down with \"headgate lab down %s\"", name, err, name)
		}
		l.nodes[spec.Name] = n
	}
	return l, nil
}

// Node is the node of that name. It panics if there is none: names of nodes are
// the caller's own, unlike those of Host.
func (l *Lab) Node(name string) *Node {
	n, ok := l.nodes[name]
	if !ok {
		panic(fmt.Sprintf("lab %s has no node %q", l.Topology.Name, name))
	}
	return n
}

// Host is a node as package traffic needs it; traffic.Start takes this method.
func (l *Lab) Host(name string) (traffic.Host, error) {
	n, ok := l.nodes[name]
	if !ok {
		return nil, configErrorf("there is no node %q in lab %q", name, l.Topology.Name)
	}
	return n, nil
}

// WireStats are the counts of an emulated link, by direction (forward, back);
// ok is false for a veth link and in a lab that was attached.
func (l *Lab) WireStats(link int) (stats [2]wire.Stats, ok bool) {
	w := l.wires[link]
	if w == nil {
		return stats, false
	}
	return w.Stats(), true
}

// NeedsHolder tells whether some link needs a process of ours to carry its
// frames, so that the lab cannot be left without one.
func (t *Topology) NeedsHolder() bool {
	for _, l := range t.Links {
		if l.Forward.Delay > 0 || l.Back.Delay > 0 {
			return true
		}
	}
	return false
}

// Leave lets the lab stay when this process ends; Close then only lets go of it.
// It is an error if a link needs a process of ours.
func (l *Lab) Leave() error {
	if l.Topology.NeedsHolder() {
		return configErrorf("lab %q has links with delay, which end with this process", l.Topology.Name)
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

// Close removes the lab: processes, links, namespaces and at last its file. It
// returns when the kernel has let go of the namespaces, or after 10 s with an
// error that names who uses them. A second call does nothing.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.wires {
		if w != nil {
			w.Close()
			l.wires[i] = nil
		}
	}
	for _, n := range l.nodes {
		n.close()
	}
	if !l.own {
		return nil
	}
	unlock, err := lockStates()
	if err != nil {
		return err
	}
	defer unlock()
	if err := destroy(l.state); err != nil {
		return err
	}
	l.own = false
	return nil
}
