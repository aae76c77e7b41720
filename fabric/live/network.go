package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/session"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/unit"
)

// Constants of the loop, chosen for Headgate.
const (
	// tick is how often links that are silent and frames that are due are looked for.
	tick = 100 * time.Millisecond
	// settle is after what time without a discovery frame a port belongs to hosts: three frames could have come.
	settle = 3 * tick
	// linkInterval and linkTimeout find a link that passes nothing within a second: two frames may be lost.
	linkInterval, linkTimeout = 4 * tick, 9 * tick
	// silence is after what time without a message a switch cannot be asked about its links.
	silence = linkInterval + 2*tick
	// hostInterval is the interval of discovery frames at ports of hosts.
	hostInterval = 5 * time.Second
	// firstPlan is after what time the first plan is made: the switches have connected, and three discovery frames have passed.
	firstPlan = 7 * tick
	// gather is how long further changes are waited for before a plan is made.
	gather = 5 * time.Millisecond
	// retry is after what time a switch that refused changes is read and compared again.
	retry = 5 * time.Second
)

// rules bound what is known of hosts.
var rules = fabric.HostRules{Silence: time.Second, Expiry: time.Hour, PerPort: fabric.DefaultHostsPerPort, Total: 20_000, PerHost: 16}

// Options configure a Network.
type Options struct {
	// Key is what the discovery frames are authenticated with. All controllers of the network have the same.
	Key []byte
	// Generation is the term of this controller as the master of the switches: a switch accepts only newer ones.
	Generation uint64
	// Event is called with what happens, for people. It must not block. It may be nil.
	Event func(fabric.Event)
	Log   *slog.Logger
}

// Network is the loop over the switches of a network.
type Network struct {
	options Options
	ctx     context.Context

	making sync.Mutex // while a plan is made

	mu       sync.Mutex
	switches map[fabric.DPID]*attached
	links    *fabric.LinkLearner
	hosts    *fabric.HostLearner
	ports    map[fabric.PortID]*port
	absent   map[fabric.DPID]absent
	config   configured
	labels   map[fabric.DPID]uint16
	// wires counts changes of switches, ports and links, and planned is the count that tree and next are of.
	wires, planned int
	plan           *program.Connectivity
	version        int // of plan
	planning       *time.Timer
	computing      bool      // a plan is made
	began          time.Time // when the first switch was attached
	ticker         *time.Timer
	unknown        buckets
	counters       Counters
}

// attached is a switch that is connected.
type attached struct {
	id      fabric.DPID
	conn    *session.Conn
	wake    chan struct{} // there is a newer plan
	done    int           // the version of the plan that it has
	problem error
}

// port is a port that is up.
type port struct {
	since time.Time // when it came up
	sent  time.Time // the last discovery frame
	heard bool      // a discovery frame came
	ready bool      // it belongs to hosts
}

// Counters count what the loop has done.
type Counters struct {
	PacketIns, Dropped, Forged, Answered, Flooded, Plans uint64
}

// New returns a loop without switches, until ctx ends.
func New(ctx context.Context, o Options) *Network {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	n := &Network{
		options: o, ctx: ctx, switches: map[fabric.DPID]*attached{}, absent: map[fabric.DPID]absent{}, ports: map[fabric.PortID]*port{}, labels: map[fabric.DPID]uint16{},
		unknown: buckets{},
	}
	n.links, n.hosts = fabric.NewLinkLearner(linkTimeout, n.label), fabric.NewHostLearner(rules, n.label)
	n.mu.Lock()
	n.ticker = time.AfterFunc(tick, n.tick) // tick sets it, too
	n.mu.Unlock()
	context.AfterFunc(ctx, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ticker.Stop()
		if n.planning != nil {
			n.planning.Stop()
		}
	})
	return n
}

// SessionOptions returns the options of the sessions that a loop leads, without Handle. A switch is asked often whether it is alive,
// so that a link that passes nothing can be told from a channel that is silent.
func SessionOptions() session.Options {
	return session.Options{EchoInterval: linkInterval, EchoTimeout: 5*time.Second - linkInterval}
}

// Serve carries the channel of a switch that has connected, until it ends. The error is why.
func (n *Network) Serve(conn net.Conn) error {
	o := SessionOptions()
	o.Handle = n.Handle
	c, err := session.Open(n.ctx, conn, o)
	if err != nil {
		return err
	}
	defer c.Close()
	return n.Lead(c)
}

// Lead becomes the master of a switch, and connects it with the others until its session ends, or the loop. The error is why. The
// session's messages must go to Handle; it stays open.
func (n *Network) Lead(c *session.Conn) error {
	s := &attached{id: fabric.DPID(c.DatapathID()), conn: c, wake: make(chan struct{}, 1)}
	n.mu.Lock()
	err := n.accepts(s.id)
	n.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := c.SetRole(n.ctx, openflow.RoleMaster, n.options.Generation); err != nil {
		return fmt.Errorf("switch %v: cannot become its master: %w", s.id, err)
	}
	state, err := read(n.ctx, c)
	if err != nil {
		return fmt.Errorf("switch %v: cannot read what it has: %w", s.id, err)
	}
	// An error of it is one of the program, too.
	if err := c.Send(program.Discovery().Mod()); err != nil {
		return err
	}
	n.attach(s)
	defer n.detach(s)
	n.adopt(s, *state)
	n.synchronize(s, state)
	return cmp.Or(c.Err(), n.ctx.Err())
}

// attach adds a switch that is connected. One with the same id, whose connection has not been seen to end, is replaced.
func (n *Network) attach(s *attached) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old := n.switches[s.id]; old != nil {
		n.event(fabric.Event{Kind: fabric.SwitchChanged, Switch: s.id, Text: fmt.Sprintf("switch %v connects from %v, and was connected from %v: if it does so again, two switches have this id, so change one", s.id, s.conn.RemoteAddr(), old.conn.RemoteAddr())})
		n.remove(old)
		go old.conn.Close()
	} else {
		n.event(fabric.Event{Kind: fabric.SwitchAdded, Switch: s.id, Text: fmt.Sprintf("switch %v is connected from %v", s.id, s.conn.RemoteAddr())})
	}
	n.switches[s.id] = s
	now := time.Now()
	n.returns(s.id, now)
	n.bind()
	if n.began.IsZero() {
		n.began = now
	}
	for _, p := range s.conn.Ports() {
		if carries(p) {
			n.portUp(s, fabric.PortNo(p.No), now)
		}
	}
	n.wires++
	n.replan()
}

func (n *Network) detach(s *attached) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.switches[s.id] != s {
		return // it was replaced
	}
	why := cmp.Or(s.conn.Err(), n.ctx.Err())
	if errors.Is(why, session.ErrSilent) {
		n.keep(s.id)
	}
	n.event(fabric.Event{Kind: fabric.SwitchRemoved, Switch: s.id, Text: fmt.Sprintf("switch %v is disconnected: %v", s.id, why)})
	n.remove(s)
	n.replan()
}

// remove forgets a switch with its links. Its hosts stay: they are behind it when it returns. n.mu must be held.
func (n *Network) remove(s *attached) {
	delete(n.switches, s.id)
	for id := range n.ports {
		if id.Switch == s.id {
			delete(n.ports, id)
		}
	}
	n.events(n.links.SwitchGone(s.id, time.Now()))
	n.wires++
}

// carries reports whether a port can carry frames.
func carries(p openflow.Port) bool {
	return p.No <= openflow.PortMax && p.State&openflow.PortLinkDown == 0 && p.Config&openflow.PortDown == 0
}

// portUp begins to find out what is at a port. n.mu must be held.
func (n *Network) portUp(s *attached, no fabric.PortNo, now time.Time) {
	id := fabric.PortID{Switch: s.id, Port: no}
	if n.ports[id] != nil {
		return
	}
	n.ports[id] = &port{since: now, ready: n.isHostPort(id)}
	n.hosts.PortUp(id)
	if !n.isHostPort(id) {
		n.discover(s, no, now)
	}
}

// portDown forgets what was at a port. n.mu must be held.
func (n *Network) portDown(id fabric.PortID, now time.Time) {
	if n.ports[id] == nil {
		return
	}
	delete(n.ports, id)
	n.events(n.links.PortDown(id, now))
	n.hosts.PortDown(id)
}

// Handle takes a message that a switch sent on its own.
func (n *Network) Handle(c *session.Conn, m openflow.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.switches[fabric.DPID(c.DatapathID())]
	if s == nil || s.conn != c {
		return // before it is attached, or after
	}
	switch m := m.(type) {
	case *openflow.PortStatus:
		n.portStatus(s, m)
	case *openflow.PacketIn:
		n.packetIn(s, m)
	case *openflow.Error:
		n.options.Log.Warn("a switch refused a message", "switch", s.id, "error", m)
	}
}

func (n *Network) portStatus(s *attached, m *openflow.PortStatus) {
	id, now := fabric.PortID{Switch: s.id, Port: fabric.PortNo(m.Port.No)}, time.Now()
	if m.Port.No > openflow.PortMax {
		return
	}
	up := m.Reason != openflow.PortDelete && carries(m.Port)
	if up == (n.ports[id] != nil) {
		return
	}
	if up {
		n.portUp(s, id.Port, now)
		n.event(fabric.Event{Kind: fabric.PortChanged, Port: id, Text: fmt.Sprintf("port %v is up", id)})
	} else {
		n.portDown(id, now)
		n.event(fabric.Event{Kind: fabric.PortChanged, Port: id, Text: fmt.Sprintf("port %v is down", id)})
	}
	n.wires++
	n.replan()
}

// tick looks for what time changes.
func (n *Network) tick() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return
	}
	now := time.Now()
	for _, s := range n.switches {
		if s.conn.Silent() >= silence {
			n.links.Hold(s.id, now)
		}
	}
	if found := n.links.Expire(now); len(found) > 0 {
		n.events(found)
		n.wires++
		n.replan()
	}
	n.expireAbsent(now)
	if found := n.hosts.Expire(now); len(found) > 0 {
		n.events(found)
		n.replan()
	}
	n.discoverDue(now)
	n.ticker = time.AfterFunc(tick, n.tick)
}

// events passes on what a learner has found. n.mu must be held.
func (n *Network) events(all []fabric.Event) {
	for _, e := range all {
		if e.Kind == fabric.HostElsewhere {
			n.askAtOldPort(e.Host)
		}
		n.event(e)
	}
}

func (n *Network) event(e fabric.Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if n.options.Event != nil {
		n.options.Event(e)
	}
}

// parts are the switches, links and hosts as they are known. n.mu must be held.
func (n *Network) parts() fabric.Parts {
	var parts fabric.Parts
	speeds := map[fabric.PortID]unit.Rate{}
	parts.Sites = n.config.Sites
	for id, s := range n.switches {
		f := s.conn.Features()
		named, _ := n.config.Switch(id)
		one := fabric.Switch{ID: id, Name: named.Name, Site: named.Site, Capabilities: fabric.Capabilities{Tables: int(f.Tables)}, Ports: portsOf(s)}
		for _, p := range one.Ports {
			speeds[fabric.PortID{Switch: id, Port: p.No}] = p.Speed
		}
		parts.Switches = append(parts.Switches, one)
	}
	for _, l := range n.links.Links() {
		written := n.config.links[l]
		capacity, source := fabric.Capacity(written.Capacity, 0, min(speeds[l.From], speeds[l.To]))
		if capacity == 0 {
			capacity = unknownCapacity
		}
		parts.Links = append(parts.Links, fabric.Link{LinkID: l, Capacity: capacity, Source: source, Cost: max(written.Cost, fabric.DefaultCost)})
	}
	n.addAbsent(&parts)
	for _, h := range n.hosts.Hosts() {
		if n.ports[h.At] != nil || n.isAbsent(h.At.Switch) {
			parts.Hosts = append(parts.Hosts, h)
		}
	}
	return parts
}

// portsOf returns the ports of a switch that can carry frames, with their state.
func portsOf(s *attached) (all []fabric.Port) {
	for _, p := range s.conn.Ports() {
		if p.No > openflow.PortMax {
			continue
		}
		state := fabric.Up
		if !carries(p) {
			state = fabric.Down
		}
		all = append(all, fabric.Port{No: fabric.PortNo(p.No), Name: p.Name, Speed: unit.Rate(p.CurrSpeed) * unit.Kbit, State: state})
	}
	return all
}

// unknownCapacity is the capacity of a link of which nothing is known.
const unknownCapacity = unit.Gbit

// replan makes a new plan soon. The first waits until the links and hosts are known: the switches may carry traffic, by what
// an earlier controller gave them. n.mu must be held.
func (n *Network) replan() {
	if n.planning == nil {
		n.planning = time.AfterFunc(max(gather, firstPlan-time.Since(n.began)), n.makePlan)
	}
}

// makePlan makes a plan of what is known, and wakes all switches. The plan of a thousand switches takes a third of a second, in
// which others must be answered: n.mu is not held meanwhile.
func (n *Network) makePlan() {
	n.making.Lock()
	defer n.making.Unlock()
	n.mu.Lock()
	n.planning = nil
	parts, labels, before, wires := n.parts(), maps.Clone(n.labels), n.plan, n.wires
	sameWires := before != nil && n.planned == wires
	ready := map[fabric.PortID]bool{}
	for id, p := range n.ports {
		ready[id] = p.ready
	}
	ended := n.ctx.Err() != nil
	n.computing = true
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.computing = false
	}()
	if ended {
		return
	}
	t, err := fabric.New(parts)
	if err != nil {
		n.options.Log.Error("the network contradicts itself", "error", err)
		return
	}
	if labels, err = program.AssignLabels(labels, t.Switches()); err != nil {
		n.options.Log.Error("cannot connect the network", "error", err)
		return
	}
	c := &program.Connectivity{Topology: t, Labels: labels, HostPort: func(id fabric.PortID) bool { return ready[id] }}
	if sameWires {
		c.Tree, c.Next = before.Tree, before.Next
	} else {
		c.Tree, c.Next = t.SpanningTree(), t.NextHops()
	}
	var links []fabric.PortID
	for _, l := range t.Links() {
		links = append(links, l.From)
	}
	n.install(c, wires, links)
}

// install makes a plan the one in force.
func (n *Network) install(c *program.Connectivity, wires int, links []fabric.PortID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.Copy(n.labels, c.Labels) // a switch that returns has its label again
	n.plan, n.planned = c, wires
	n.version++
	n.counters.Plans++
	n.events(n.hosts.SetLinkPorts(links, time.Now()))
	for _, s := range n.switches {
		s.wakeUp()
	}
}

func (s *attached) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Plan returns the plan in force, nil before the first.
func (n *Network) Plan() *program.Connectivity {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.plan
}

// Counters returns what the loop has done.
func (n *Network) Counters() Counters {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counters
}

// Settled reports whether all switches have what the newest plan says.
func (n *Network) Settled() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.planPending() || n.plan == nil {
		return false
	}
	for _, s := range n.switches {
		if !n.current(s) {
			return false
		}
	}
	return true
}

// planPending reports whether a newer plan is due or being made. n.mu must be held.
func (n *Network) planPending() bool { return n.planning != nil || n.computing }

// current reports whether a switch has what the newest plan says. n.mu must be held.
func (n *Network) current(s *attached) bool {
	return n.plan != nil && s.done == n.version && s.problem == nil
}

// Switches returns the ids of the switches that are connected, in order.
func (n *Network) Switches() (ids []fabric.DPID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.switches {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
