package fabric

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/lab/traffic"
)

// order is what the bench tells its child process, which has the switches in memory, and report the answer. Times are of the
// monotonic clock, ns.
type order struct {
	// Do is "start" with a Network, "announce" for hosts within Within, "cut" of a Cable, "join" of it, "labels", or "look".
	Do      string        `json:"do"`
	Network *memory       `json:"network,omitempty"`
	Cable   int           `json:"cable,omitempty"`
	Within  time.Duration `json:"within,omitempty"`
}

type report struct {
	Error string `json:"error,omitempty"`
	// At is when the order was executed.
	At int64 `json:"at"`
	// Connected is how many channels are open, and FirstOpen when the first of them opened.
	Connected int   `json:"connected"`
	FirstOpen int64 `json:"first_open"`
	// LastChange is when a controller last sent a change of a flow, a group or a meter.
	LastChange int64 `json:"last_change"`
	// Mods are the changes of flows and groups since the last "cut" or "join".
	Mods []mod `json:"mods,omitempty"`
	// Two is how often a look, each 10 ms, has found a switch with two masters, of Looks.
	Two   int `json:"two"`
	Looks int `json:"looks"`
	// Masters is the controller of the highest generation that asked each switch to be its master, and since when: a switch
	// refuses others.
	Masters map[string]master `json:"masters,omitempty"`
	// Labels are those of the switches.
	Labels map[uint64]uint16 `json:"labels,omitempty"`
}

// mod is a change that a switch was told.
type mod struct {
	Switch  uint64 `json:"switch"`
	Message []byte `json:"message"`
}

type master struct {
	Controller string `json:"controller"`
	Since      int64  `json:"since"`
	Generation uint64 `json:"generation"`
}

// child is the state of the child process.
type child struct {
	net    *oftest.Network
	cables []*oftest.Cable
	hosts  []*oftest.Host

	mu        sync.Mutex
	connected int
	firstOpen int64
	last      int64
	recording bool
	mods      []mod
	two       int
	looks     int
	masters   map[string]master
}

// Child carries out the orders of the bench, which is its parent, until they end.
func Child(in io.Reader, out io.Writer) error {
	// A thousand switches have 13 million flows, which stay: twice their memory would be more than most machines have.
	debug.SetGCPercent(15)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := &child{masters: map[string]master{}}
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
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

func (c *child) carryOut(ctx context.Context, o order) (err error) {
	switch o.Do {
	case "start":
		if c.net, c.cables, c.hosts, err = o.Network.plan().build(); err != nil {
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
	case "look", "labels":
	default:
		return fmt.Errorf("unknown order %q", o.Do)
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
		if has := c.masters[id]; asked.Role == openflow.RoleMaster && (has == master{} || asked.GenerationID > has.Generation) {
			c.masters[id] = master{from, now, asked.GenerationID}
		}
	case openflow.TypeFlowMod, openflow.TypeGroupMod, openflow.TypeMeterMod:
		c.last = now
		if c.recording {
			c.mods = append(c.mods, mod{s.DatapathID(), slices.Clone(m)})
		}
	}
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

func (c *child) report(o order) report {
	c.mu.Lock()
	r := report{Connected: c.connected, FirstOpen: c.firstOpen, LastChange: c.last, Two: c.two, Looks: c.looks, Masters: map[string]master{}}
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
