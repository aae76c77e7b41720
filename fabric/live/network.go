package live

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"runtime"
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
	// linkInterval is the interval of discovery frames at ports of links. After linkTimeout without one the switches are asked, which
	// takes a tick and two round trips (inquiry): a link that passes nothing is found within a second, and one frame may be lost.
	linkInterval, linkTimeout = 5 * tick, 7 * tick
	// echoInterval is after what time without a message a switch is asked whether it is alive, and silence after what time it cannot be asked
	// about its links.
	echoInterval, silence = 4 * tick, 6 * tick
	// confirmInterval is the interval of frames that tell what is at the other end of a link, while frames come back from there.
	confirmInterval = 5 * time.Second
	// hostInterval is the longest interval of discovery frames at ports of hosts. At first it is as long as the port is up, so that a cable that
	// begins to pass frames late is found in about the time by which it was late.
	hostInterval = 10 * time.Second
	// firstPlan is after what time the first plan is made, and a switch gets its first one, though it is not known what is at each port.
	firstPlan = 7 * tick
	// laterPlan is after what time a switch that carries traffic gets a plan that has no use for one of its ports.
	laterPlan = 3 * firstPlan
	// gather is how long further changes are waited for before a plan is made.
	gather = 5 * time.Millisecond
	// bringTimeout is how long a plan waits until most switches have the one before it.
	bringTimeout = 10 * time.Second
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
	// difference is of the last two plans that were compared, and prints is of the last whose fingerprints were needed.
	comparing  sync.Mutex
	difference *program.Difference
	prints     *program.Fingerprints
	// resyncs bounds how many switches are read or given a whole program at the same time, and processors how many programs are made.
	resyncs, processors slots
	reading             reading

	mu       sync.Mutex
	frames   *frames
	switches map[fabric.DPID]*attached
	links    *fabric.LinkLearner
	hosts    *fabric.HostLearner
	ports    map[fabric.PortID]*port
	absent   map[fabric.DPID]absent
	// reflections are what is known of the switches at the other ends of ports, while the controller does not reach them.
	reflections map[fabric.PortID]*reflection
	inquiries   map[fabric.LinkID]*inquiry
	config      configured
	removed     removed
	labels      map[fabric.DPID]uint16
	adopted     map[uint16]bool // the labels towards which switches had flows when they connected
	// adoptedLinks are the ports that had a link by those flows.
	adoptedLinks map[fabric.PortID]bool
	// wires counts changes of switches, ports and links, and planned is the count that tree and next are of.
	wires, planned int
	plan           *program.Connectivity
	version        int // of plan
	handed         handed
	planning       *time.Timer
	computing      bool // a plan is made
	fresh          bool // plan is of all that is known
	// paused is until when no other plan is begun: making them takes at most half of the time, however often things change.
	paused      time.Time
	began       time.Time // when the first switch was attached
	attached    time.Time // when the last one was
	ticker      *time.Timer
	unknown     buckets
	copies      bucket // of frames to all ports of hosts (floods.go)
	counters    Counters
	circuits    circuits
	compared    int // flows since memory was given back
	trimming    *time.Timer
	redirection redirection
	traffic     map[fabric.PortID]*traffic
	forgotten   time.Time // when traffic that is too old was looked for
}

// attached is a switch that is connected.
type attached struct {
	id     fabric.DPID
	conn   *session.Conn
	asking bool // an echo request of inquiries has no answer yet
	polls  polls
	wake   chan struct{} // there is a newer plan
	due    time.Time     // before this, none of its ports has a discovery frame due
	// given is the version of the plan that it is being given, and done that of the plan that it has.
	given, done int
	problem     error

	portions     portions
	metering     metering
	capabilities fabric.Capabilities
	crowded      bool // an event has named that it has too many ports
}

// port is a port that is up.
type port struct {
	since time.Time // when it came up
	due   time.Time // when a discovery frame leaves it next
	sent  time.Time // the last discovery frame that does not come back
	// reflected is when one came back from the other end of its cable.
	reflected time.Time
	heard     bool // a discovery frame came
	ready     bool // it belongs to hosts
}

// Counters count what the loop has done.
type Counters struct {
	PacketIns, Dropped, Forged, Answered, Flooded, Plans uint64
	// DroppedFloods are frames to unknown destinations that were not sent to all ports of hosts, because there were too many.
	DroppedFloods uint64
	// Resyncs is how often all that a switch has was read, and Errors how often one did not take what it was given.
	Resyncs, Errors uint64
}

// New returns a loop without switches, until ctx ends.
func New(ctx context.Context, o Options) *Network {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	n := &Network{
		options: o, ctx: ctx, frames: newFrames(o.Key), switches: map[fabric.DPID]*attached{}, absent: map[fabric.DPID]absent{}, reflections: map[fabric.PortID]*reflection{}, ports: map[fabric.PortID]*port{}, labels: map[fabric.DPID]uint16{}, adopted: map[uint16]bool{}, adoptedLinks: map[fabric.PortID]bool{},
		unknown: buckets{}, redirection: newRedirection(), traffic: map[fabric.PortID]*traffic{}, resyncs: make(slots, maxResyncs), processors: make(slots, max(runtime.GOMAXPROCS(0)-1, 1)),
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
	return session.Options{EchoInterval: echoInterval, EchoTimeout: 5*time.Second - echoInterval}
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
	s := &attached{id: fabric.DPID(c.DatapathID()), conn: c, wake: make(chan struct{}, 1), metering: newMetering()}
	n.mu.Lock()
	err := n.accepts(s.id)
	n.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := c.SetRole(n.ctx, openflow.RoleMaster, n.options.Generation); err != nil {
		return fmt.Errorf("switch %v: cannot become its master: %w", s.id, err)
	}
	s.capabilities = capabilitiesOf(n.ctx, c)
	state, have, err := n.meet(s)
	if err != nil {
		return fmt.Errorf("switch %v: cannot read what it has: %w", s.id, err)
	}
	n.attach(s, state)
	defer n.detach(s)
	carries := slices.ContainsFunc(state.Flows, carriesTraffic)
	state = nil // it would stay while the switch is connected
	n.synchronize(s, carries, have)
	return cmp.Or(c.Err(), n.ctx.Err())
}

// meet finds out what a switch has, and gives it the discovery flow.
func (n *Network) meet(s *attached) (*program.State, had, error) {
	if err := n.resyncs.take(n.ctx); err != nil {
		return nil, had{}, err
	}
	defer n.resyncs.give()
	if state, have, ok := n.recognize(n.ctx, s); ok {
		return &state, have, nil
	}
	state, err := n.resync(s)
	if err != nil {
		return nil, had{}, err
	}
	// An error of it is one of the program, too.
	return state, had{read: state}, s.conn.Send(program.Discovery(0).Mod())
}

// attach adds a switch that is connected, with what it has. One with the same id, whose connection has not been seen to end, is replaced.
func (n *Network) attach(s *attached, state *program.State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old := n.switches[s.id]; old != nil {
		n.event(fabric.Event{Kind: fabric.SwitchChanged, Switch: s.id, Text: fmt.Sprintf("switch %v is connected from %v; its connection from %v had not ended", s.id, s.conn.RemoteAddr(), old.conn.RemoteAddr())})
		n.remove(old)
		go old.conn.CloseFor(errReplaced)
	} else {
		n.event(fabric.Event{Kind: fabric.SwitchAdded, Switch: s.id, Text: fmt.Sprintf("switch %v is connected from %v", s.id, s.conn.RemoteAddr())})
	}
	n.switches[s.id] = s
	n.lacks(s)
	now := time.Now()
	n.returns(s.id, now)
	n.bindPortsOf(s.id)
	n.checkPorts(s)
	n.attached = now
	if n.began.IsZero() {
		n.began = now
	}
	for _, p := range s.conn.Ports() {
		if carries(p) {
			n.portUp(s, fabric.PortNo(p.No), now)
		}
	}
	n.adopt(s, state, now)
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
	n.event(fabric.Event{Kind: fabric.SwitchRemoved, Switch: s.id, Text: fmt.Sprintf("switch %v is disconnected: %v", s.id, why)})
	n.remove(s)
	if n.accepts(s.id) == nil {
		n.keep(s.id)
	}
	n.replan()
}

// remove forgets a switch with its links. Its hosts stay: they are behind it when it returns. n.mu must be held.
func (n *Network) remove(s *attached) {
	delete(n.switches, s.id)
	delete(n.config.missing, s.id)
	for id := range n.ports {
		if id.Switch == s.id {
			delete(n.ports, id)
		}
	}
	n.forgetReadings(s)
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
	n.ports[id] = &port{since: now, due: now.Add(tick), ready: n.isHostPort(id)}
	s.due = time.Time{}
	n.hosts.PortUp(id)
	if !n.isHostPort(id) {
		n.send(s, now, ofLink, no)
	}
}

// portDown forgets what was at a port. n.mu must be held.
func (n *Network) portDown(id fabric.PortID, now time.Time) {
	if n.ports[id] == nil {
		return
	}
	delete(n.ports, id)
	n.unplugged(id)
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
	case *openflow.FlowRemoved:
		n.flowRemoved(m)
	case *openflow.Error:
		if n.refusesWatch(s, m) {
			return
		}
		n.counters.Errors++
		n.options.Log.Warn("a switch refused a message", "switch", s.id, "error", m)
	}
}

func (n *Network) portStatus(s *attached, m *openflow.PortStatus) {
	id, now := fabric.PortID{Switch: s.id, Port: fabric.PortNo(m.Port.No)}, time.Now()
	if m.Port.No > openflow.PortMax {
		return
	}
	n.bindPortsOf(s.id)
	n.checkPorts(s)
	n.crowds(s)
	if m.Reason == openflow.PortDelete {
		delete(n.unknown, id)
	}
	up := m.Reason != openflow.PortDelete && carries(m.Port) && s.conn.HasPort(m.Port.No)
	if up == (n.ports[id] != nil) {
		return
	}
	if up {
		n.portUp(s, id.Port, now)
		n.event(fabric.Event{Kind: fabric.PortChanged, Port: id, Text: fmt.Sprintf("port %s is up", n.label(id))})
	} else {
		n.portDown(id, now)
		n.event(fabric.Event{Kind: fabric.PortChanged, Port: id, Text: fmt.Sprintf("port %s is down", n.label(id))})
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
	silent := map[fabric.DPID]bool{}
	for id, s := range n.switches {
		if s.conn.Silent() >= silence {
			silent[id] = true
		}
	}
	if len(silent) > 0 {
		n.rewired(n.links.Hold(silent, func(neighbour fabric.PortID) bool { return n.passes(neighbour, now) }, now))
	}
	n.expireLinks(now)
	n.expireAbsent(now)
	if found := n.hosts.Expire(now); len(found) > 0 {
		n.events(found)
		n.replan()
	}
	n.askSilent()
	n.watchDue(now)
	n.discoverDue(now)
	n.pollDue(now)
	n.ticker = time.AfterFunc(tick, n.tick)
}

// rewired takes what was found of links. n.mu must be held.
func (n *Network) rewired(found []fabric.Event) {
	if len(found) > 0 {
		n.events(found)
		n.wires++
		n.replan()
	}
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
	links, hosts := n.links.Links(), n.hosts.Hosts()
	parts := fabric.Parts{Sites: n.config.Sites, Switches: make([]fabric.Switch, 0, len(n.switches)), Links: make([]fabric.Link, 0, len(links)), Hosts: make([]fabric.Host, 0, len(hosts))}
	speeds := make(map[fabric.PortID]unit.Rate, len(n.ports))
	for id, s := range n.switches {
		named, _ := n.config.Switch(id)
		one := fabric.Switch{ID: id, Name: named.Name, Site: named.Site, Capabilities: s.capabilities, Ports: portsOf(s)}
		for _, p := range one.Ports {
			speeds[fabric.PortID{Switch: id, Port: p.No}] = p.Speed
		}
		parts.Switches = append(parts.Switches, one)
	}
	for _, l := range links {
		written := n.config.links[l]
		one := fabric.Link{LinkID: l, Cost: max(written.Cost, fabric.DefaultCost), Reservable: written.Reservable}
		one.SetCapacity(written.Capacity, n.config.Measured[l], min(speeds[l.From], speeds[l.To]))
		if one.Capacity == 0 {
			one.Capacity = unknownCapacity
		}
		parts.Links = append(parts.Links, one)
	}
	n.addAbsent(&parts)
	linked := make(map[fabric.PortID]bool, len(parts.Links)) // hosts were at some before they had a link
	for _, l := range parts.Links {
		linked[l.From], linked[l.To] = true, true
	}
	for _, h := range hosts {
		if linked[h.At] {
			continue
		}
		if n.ports[h.At] != nil || n.isAbsent(h.At.Switch) {
			parts.Hosts = append(parts.Hosts, h)
		}
	}
	return parts
}

// portsOf returns the ports of a switch that can carry frames, with their state.
func portsOf(s *attached) []fabric.Port {
	ports := s.conn.Ports()
	all, named := make([]fabric.Port, 0, len(ports)), make(map[string]bool, len(ports))
	for _, p := range ports {
		if p.No > openflow.PortMax {
			continue
		}
		state := fabric.Up
		if !carries(p) {
			state = fabric.Down
		}
		// A switch that cuts off long names can have several ports of one name, which then names only the first.
		if named[p.Name] {
			p.Name = ""
		}
		named[p.Name] = true
		all = append(all, fabric.Port{No: fabric.PortNo(p.No), Name: p.Name, Speed: unit.Rate(p.CurrSpeed) * unit.Kbit, State: state})
	}
	return all
}

// unknownCapacity is the capacity of a link of which nothing is known.
const unknownCapacity = unit.Gbit

// replan makes a plan soon. The first waits for a switch, and until it is known what is at each port, but not for long. n.mu must be held.
func (n *Network) replan() {
	n.fresh = false
	if n.began.IsZero() {
		return
	}
	wait := max(gather, time.Until(n.paused))
	if n.plan == nil && !n.decided() {
		wait = max(gather, firstPlan-time.Since(n.began))
	}
	switch {
	case n.planning == nil:
		n.planning = time.AfterFunc(wait, n.makePlan)
	case n.plan == nil: // it can be known now, or no longer, as a switch has connected
		n.planning.Reset(wait)
	}
}

// decided reports whether it is known what is at each port: hosts, or another switch. n.mu must be held.
func (n *Network) decided() bool {
	for _, p := range n.ports {
		if !p.ready && !p.heard {
			return false
		}
	}
	return true
}

// makePlan makes a plan of what is known, and wakes all switches. The plan of a thousand switches takes a third of a second, in
// which others must be answered: n.mu is not held meanwhile.
func (n *Network) makePlan() {
	n.making.Lock()
	defer n.making.Unlock()
	n.mu.Lock()
	switch {
	case n.planning == nil, n.ctx.Err() != nil: // the timer was reset after it had fired, and the plan is made
		n.mu.Unlock()
		return
	case n.plan == nil && n.awaits() || n.behind():
		n.planning.Reset(tick)
		n.mu.Unlock()
		return
	}
	n.planning = nil
	parts, labels, before, wires, circuits := n.parts(), maps.Clone(n.labels), n.plan, n.wires, n.circuits
	sameWires := before != nil && n.planned == wires
	ready := map[fabric.PortID]bool{}
	for id, p := range n.ports {
		ready[id] = p.ready
	}
	n.computing = true
	n.mu.Unlock()
	began := time.Now()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.computing = false
		n.paused = time.Now().Add(time.Since(began))
	}()
	t, err := fabric.New(parts)
	if err != nil {
		n.contradiction(err)
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
	c.Circuits = circuits.plan(t, before)
	var links []fabric.PortID
	for _, l := range t.Links() {
		links = append(links, l.From)
	}
	n.install(c, wires, links)
}

// behind reports whether most switches are still being given a plan, for which they have some time. When many hosts come one after the
// other, each plan would be given to a thousand switches before they have the one before it. A switch that waits for its first plan is not
// behind: it waits for the next one. n.mu must be held.
func (n *Network) behind() bool {
	if n.plan == nil || time.Since(n.handed.at) > bringTimeout {
		return false
	}
	behind := 0
	for _, s := range n.switches {
		if s.done < s.given {
			behind++
		}
	}
	return behind > len(n.switches)/2
}

// contradiction makes an event of what does not fit together, so that there is no plan for it.
func (n *Network) contradiction(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.options.Log.Error("the network contradicts itself", "error", err)
	n.event(fabric.Event{Kind: fabric.SwitchChanged, Text: fmt.Sprintf("the network contradicts itself, so switches keep the flows that they have: %v", err)})
}

// install makes a plan the one in force.
func (n *Network) install(c *program.Connectivity, wires int, links []fabric.PortID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.Copy(n.labels, c.Labels) // a switch that returns has its label again
	before := n.plan
	n.plan, n.planned, n.fresh = c, wires, n.planning == nil
	n.version++
	n.counters.Plans++
	n.events(n.hosts.SetLinkPorts(links, time.Now()))
	n.hand(before)
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
func (n *Network) planPending() bool { return n.planning != nil || n.computing || n.circuits.moving }

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
