package inmemory

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// Order is what the bench tells its child process, which has the switches in memory, and Report the answer. Times are of the
// monotonic clock, ns.
type Order struct {
	// Do is "start" with a Network, "announce" for hosts within Within, "cut" of a Cable, "join" of it, "labels", "send" of Streams, "record", or
	// "look".
	Do      string        `json:"do"`
	Network *Network      `json:"network,omitempty"`
	Cable   int           `json:"cable,omitempty"`
	Within  time.Duration `json:"within,omitempty"`
	// Streams are those of hosts. The first order begins them, and each later one has the same with other rates.
	Streams []Stream `json:"streams,omitempty"`
}

// Stream is UDP from one host to another at a rate. Hosts count from 0.
type Stream struct {
	From int       `json:"from"`
	To   int       `json:"to"`
	Port uint16    `json:"port"` // at To
	Rate unit.Rate `json:"rate"`
}

// Report is the answer to an Order.
type Report struct {
	Error string `json:"error,omitempty"`
	// At is when the order was executed.
	At int64 `json:"at"`
	// Connected is how many channels are open, and FirstOpen when the first of them opened.
	Connected int   `json:"connected"`
	FirstOpen int64 `json:"first_open"`
	// LastChange is when a controller last sent a change of a flow, a group or a meter.
	LastChange int64 `json:"last_change"`
	// Mods are the changes of flows, groups and meters since the last "cut", "join" or "record".
	Mods []Mod `json:"mods,omitempty"`
	// Two is how often a look, each 10 ms, has found a switch with two masters, of Looks.
	Two   int `json:"two"`
	Looks int `json:"looks"`
	// Masters is the controller of the highest generation that asked each switch to be its master, and since when: a switch
	// refuses others.
	Masters map[string]Master `json:"masters,omitempty"`
	// Labels are those of the switches.
	Labels map[uint64]uint16 `json:"labels,omitempty"`
}

// Mod is a change that a switch was told.
type Mod struct {
	Switch  uint64 `json:"switch"`
	Message []byte `json:"message"`
}

// Master is a controller that leads a switch.
type Master struct {
	Controller string `json:"controller"`
	Since      int64  `json:"since"`
	Generation uint64 `json:"generation"`
}

// child is the state of the child process.
type child struct {
	net    *oftest.Network
	cables []*oftest.Cable
	hosts  []*oftest.Host
	sent   []*oftest.Stream
	rates  []unit.Rate // of sent

	mu        sync.Mutex
	connected int
	firstOpen int64
	last      int64
	recording bool
	mods      []Mod
	two       int
	looks     int
	masters   map[string]Master
}

// Child carries out the orders of the bench, which is its parent, until they end.
func Child(in io.Reader, out io.Writer) error {
	// A thousand switches have 13 million flows, which stay: twice their memory would be more than most machines have. Until then the collector
	// may leave the processors to the switches.
	debug.SetMemoryLimit(availableMemory() * 3 / 4)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := &child{masters: map[string]Master{}}
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o Order
		if err := orders.Decode(&o); err != nil {
			return nil // the parent has ended
		}
		at := traffic.MonotonicNow()
		err := c.carryOut(ctx, o)
		r := c.report(o)
		if r.At = at; err != nil {
			r.Error = err.Error()
		}
		if err := answers.Encode(r); err != nil {
			return err
		}
	}
}

// availableMemory returns what the machine has left, in bytes, or 4 GiB if it does not say (proc_meminfo(5)).
func availableMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	_, rest, ok := strings.Cut(string(text), "MemAvailable:")
	kilobytes := int64(0)
	if _, scan := fmt.Sscan(rest, &kilobytes); err != nil || !ok || scan != nil {
		return 4 << 30
	}
	return kilobytes << 10
}

func (c *child) carryOut(ctx context.Context, o Order) (err error) {
	switch o.Do {
	case "start":
		if c.net, c.cables, c.hosts, err = o.Network.Plan().build(); err != nil {
			return err
		}
		for _, s := range c.net.Switches() {
			for _, at := range o.Network.Controllers {
				go s.Dial(ctx, 100*time.Millisecond, func(ctx context.Context) (net.Conn, error) { return c.dial(ctx, s, at) })
			}
		}
		go c.watchMasters(ctx)
	case "announce":
		pause := o.Within / time.Duration(max(len(c.hosts), 1))
		began := time.Now()
		for i, h := range c.hosts {
			h.Announce()
			time.Sleep(time.Until(began.Add(time.Duration(i) * pause)))
		}
	case "cut", "join":
		c.mu.Lock()
		c.recording, c.mods = true, nil
		c.mu.Unlock()
		if o.Do == "join" {
			return c.cables[o.Cable].Plug()
		}
		c.cables[o.Cable].Unplug()
	case "send":
		return c.send(o.Streams)
	case "record":
		c.mu.Lock()
		c.recording, c.mods = true, nil
		c.mu.Unlock()
	case "look", "labels":
	default:
		return fmt.Errorf("unknown order %q", o.Do)
	}
	return nil
}

// streamStep is how often what streams carry is computed.
const streamStep = 200 * time.Millisecond

// send begins streams, or changes their rates.
func (c *child) send(streams []Stream) error {
	if c.sent == nil {
		for _, s := range streams {
			from, to := c.hosts[s.From], c.hosts[s.To]
			frame := oftest.UDPFrame(from.MAC(), to.MAC(), netip.AddrPortFrom(from.Addr(false), 4000), netip.AddrPortFrom(to.Addr(false), s.Port), 1200)
			c.sent, c.rates = append(c.sent, c.net.AddStream(from, frame, s.Rate)), append(c.rates, s.Rate)
		}
		c.net.AdvanceEvery(streamStep)
		return nil
	}
	if len(streams) != len(c.sent) {
		return fmt.Errorf("%d rates of %d streams", len(streams), len(c.sent))
	}
	for i, s := range streams {
		if s.Rate != c.rates[i] {
			c.sent[i].SetRate(s.Rate)
			c.rates[i] = s.Rate
		}
	}
	return nil
}

// dial connects a switch to a controller.
func (c *child) dial(ctx context.Context, s *oftest.Switch, at string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.connected++; c.connected == 1 {
		c.firstOpen = traffic.MonotonicNow()
	}
	c.mu.Unlock()
	return &closing{tapped: &tapped{Conn: conn, on: func(m []byte) { c.sees(s, at, m) }}, closed: sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.connected--
	})}, nil
}

// closing counts when it is closed.
type closing struct {
	*tapped
	closed func()
}

// Close implements net.Conn.
func (c *closing) Close() error {
	c.closed()
	return c.tapped.Close()
}

// sees notes what a controller sent.
func (c *child) sees(s *oftest.Switch, from string, m []byte) {
	now, kind := traffic.MonotonicNow(), openflow.Type(m[1])
	c.mu.Lock()
	defer c.mu.Unlock()
	switch kind {
	case openflow.TypeRoleRequest:
		_, r, err := openflow.Decode(m)
		if err != nil {
			return
		}
		id, asked := fmt.Sprintf("%016x", s.DatapathID()), r.(*openflow.RoleRequest).Role
		if has := c.masters[id]; asked.Role == openflow.RoleMaster && (has == Master{} || asked.GenerationID > has.Generation) {
			c.masters[id] = Master{from, now, asked.GenerationID}
		}
	case openflow.TypeFlowMod, openflow.TypeGroupMod, openflow.TypeMeterMod:
		if kind == openflow.TypeFlowMod && isDiscovery(m) {
			return // it always sends LLDP to the controller; what changes is the fingerprint that the controller keeps there
		}
		c.last = now
		if c.recording {
			c.mods = append(c.mods, Mod{s.DatapathID(), slices.Clone(m)})
		}
	}
}

// isDiscovery reports whether a change of a flow is of the one of discovery, by its cookie (OpenFlow 1.3.5, section 7.3.4.1).
func isDiscovery(m []byte) bool {
	k, ours := program.KindOf(binary.BigEndian.Uint64(m[8:16]))
	return ours && k == program.KindDiscovery
}

// watchMasters looks each 10 ms whether a switch has two masters.
func (c *child) watchMasters(ctx context.Context) {
	if len(c.net.Switches()) > 50 {
		return // it is the network of another case, whose processor time would be spent here
	}
	for ctx.Err() == nil {
		two := 0
		for _, s := range c.net.Switches() {
			masters := 0
			for _, r := range s.Controllers() {
				if r == openflow.RoleMaster {
					masters++
				}
			}
			if masters > 1 {
				two++
			}
		}
		c.mu.Lock()
		c.two, c.looks = c.two+two, c.looks+1
		c.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
}

func (c *child) report(o Order) Report {
	c.mu.Lock()
	r := Report{Connected: c.connected, FirstOpen: c.firstOpen, LastChange: c.last, Two: c.two, Looks: c.looks, Masters: map[string]Master{}}
	for id, m := range c.masters {
		r.Masters[id] = m
	}
	if o.Do == "look" {
		r.Mods = slices.Clone(c.mods)
	}
	c.mu.Unlock()
	if o.Do == "labels" {
		r.Labels = map[uint64]uint16{}
		for _, s := range c.net.Switches() {
			for _, f := range s.Flows() {
				if kind, ours := program.KindOf(f.Cookie); ours && kind == program.KindHere {
					r.Labels[s.DatapathID()] = uint16(f.Cookie)
				}
			}
		}
	}
	return r
}
