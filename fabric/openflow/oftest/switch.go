package oftest

import (
	"cmp"
	"net"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// Options describe a switch. The zero value is an Open vSwitch 3.1 of datapath id 0.
type Options struct {
	DatapathID uint64
	// Tables is the number of flow tables, 1 to 254. 0 is 254, as Open vSwitch has.
	Tables int
	Limits Limits
	// Desc is the description. The zero value is that of Open vSwitch.
	Desc openflow.Desc
	// NoLocalPort leaves out the local port, as hardware does.
	NoLocalPort bool
	// FlushOnFirst makes the arrival of the first controller, while there is no other, delete all flows, groups and
	// meters: Open vSwitch does it for the first controller of a bridge.
	FlushOnFirst bool
	// ErrorBytes is how much of a refused message its error has, at least 64 (section 7.4.4). 0 is all of it, as Open
	// vSwitch sends.
	ErrorBytes int
	// ReplyBytes is the length in bytes from which on a multipart reply is divided. 0 is 60,000.
	ReplyBytes int
	// EchoInterval is how long a controller may send nothing until it is asked whether it is alive, and again until it
	// is disconnected. 0 is 5 s, as Open vSwitch has (inactivity_probe); it is never asked if it is negative.
	EchoInterval time.Duration
}

// Limits are what a switch can have. 0 is what Open vSwitch has, and a negative number is none.
type Limits struct {
	Flows  int // of a table: 1,000,000
	Groups int // openflow.GroupMax
	Meters int // 262,144
	Bands  int // of a meter: 8
	// GroupTypes has bit n for openflow.GroupType n; 0 is all of them. Without bit 3 there is no fast failover.
	GroupTypes uint32
}

// The limits of Open vSwitch 3.1, but that flows are limited only by memory there.
const (
	defaultTables  = 254
	defaultFlows   = 1_000_000
	defaultGroups  = int(openflow.GroupMax)
	defaultMeters  = 262_144
	defaultBands   = 8
	allGroupTypes  = 1<<openflow.GroupTypeAll | 1<<openflow.GroupTypeSelect | 1<<openflow.GroupTypeIndirect | 1<<openflow.GroupTypeFF
	defaultReply   = 60_000
	defaultEcho    = 5 * time.Second
	leastErrorData = 64
)

func limit(n, standard int) int { return max(cmp.Or(n, standard), 0) }

// Switch is an OpenFlow 1.3 switch in memory. Its methods may be called by any goroutine.
type Switch struct {
	*timeline
	options    Options
	limits     Limits
	name       string
	ports      map[openflow.PortNo]*port
	tables     []table
	groups     map[openflow.GroupID]*group
	meters     map[openflow.MeterID]*meter
	made       uint64
	channels   []*channel
	generation uint64 // of the newest master
	elected    bool   // a generation is known
	fragments  openflow.ConfigFlags
	off        bool     // without power
	idle       *passage // of the next frame; nil while one passes
}

// New returns a switch without ports, but the local one.
func New(o Options) *Switch { return newSwitch(&timeline{}, "br0", o) }

func newSwitch(t *timeline, name string, o Options) *Switch {
	l := o.Limits
	s := &Switch{timeline: t, options: o, name: name, ports: map[openflow.PortNo]*port{}, limits: Limits{
		Flows: limit(l.Flows, defaultFlows), Groups: limit(l.Groups, defaultGroups), Meters: limit(l.Meters, defaultMeters),
		Bands: limit(l.Bands, defaultBands), GroupTypes: cmp.Or(l.GroupTypes, uint32(allGroupTypes)),
	}}
	if s.limits.Groups == 0 {
		s.limits.GroupTypes = 0
	}
	if s.options.Desc == (openflow.Desc{}) {
		s.options.Desc = openflow.Desc{Manufacturer: "Nicira, Inc.", Hardware: "Open vSwitch", Software: "3.1.0", SerialNum: "None", Datapath: "None"}
	}
	s.empty()
	if !o.NoLocalPort {
		s.ports[openflow.PortLocal] = &port{no: openflow.PortLocal, name: name, mac: s.mac(0xff), up: true, added: time.Now()}
	}
	return s
}

// empty removes all flows, groups and meters.
func (s *Switch) empty() {
	for i := range s.tables {
		for _, f := range s.tables[i].all {
			s.cancel(f.expiry)
		}
	}
	n := limit(s.options.Tables, defaultTables)
	s.tables = make([]table, min(max(n, 1), defaultTables))
	s.groups, s.meters = map[openflow.GroupID]*group{}, map[openflow.MeterID]*meter{}
	s.changes++
}

// DatapathID returns the id of the switch.
func (s *Switch) DatapathID() uint64 { return s.options.DatapathID }

// PowerOff ends all channels, removes all flows, groups, meters, counters and configurations of ports, and takes the
// links of the ports away, until PowerOn.
func (s *Switch) PowerOff() {
	s.lock()
	defer s.unlock()
	if s.off {
		return
	}
	s.off = true
	s.disconnect()
	s.empty()
	s.generation, s.elected, s.fragments = 0, false, openflow.FragNormal
	for _, p := range s.sortedPorts() {
		p.config, p.down, p.rx, p.tx, p.added = 0, false, counter{}, counter{}, time.Now()
		if p.cable != nil {
			p.cable.carrier(p, false)
		}
	}
}

// PowerOn brings the links of the ports back. The switch has no channel until Serve, Connect or Dial opens one.
func (s *Switch) PowerOn() {
	s.lock()
	defer s.unlock()
	s.off = false
	for _, p := range s.sortedPorts() {
		p.added = time.Now()
		if p.cable != nil {
			p.cable.carrier(p, true)
		}
	}
}

// Disconnect ends all channels. The flows, groups and meters stay, as with fail_mode=secure.
func (s *Switch) Disconnect() {
	s.lock()
	defer s.unlock()
	s.disconnect()
}

func (s *Switch) disconnect() {
	for _, c := range s.channels {
		c.end(net.ErrClosed)
	}
}

// Flows returns all flows by table, and in a table by their creation.
func (s *Switch) Flows() []openflow.FlowStats {
	s.lock()
	defer s.unlock()
	return s.flowStats(openflow.AllFlows(), &pipeline.Matcher{})
}

// Ports returns all ports by number.
func (s *Switch) Ports() (all []openflow.Port) {
	s.lock()
	defer s.unlock()
	for _, p := range s.sortedPorts() {
		all = append(all, p.desc())
	}
	return all
}

// Groups returns all groups by number.
func (s *Switch) Groups() []openflow.GroupDesc {
	s.lock()
	defer s.unlock()
	return s.groupDescs()
}

// Meters returns the counters of all meters by number.
func (s *Switch) Meters() []openflow.MeterCounters {
	s.lock()
	defer s.unlock()
	return s.meterStats(openflow.MeterAll)
}

// MeterConfigs returns the meters as they are set.
func (s *Switch) MeterConfigs() (all []openflow.MeterConfig) {
	s.lock()
	defer s.unlock()
	for _, m := range s.sortedMeters() {
		all = append(all, m.config())
	}
	return all
}

// Controllers returns the roles of the controllers that are connected, in the order of their arrival.
func (s *Switch) Controllers() []openflow.ControllerRole {
	s.lock()
	defer s.unlock()
	var all []openflow.ControllerRole
	for _, c := range s.channels {
		all = append(all, c.role)
	}
	return all
}

// Do executes a message as if a controller of equal role had sent it, such as a flow-mod, and returns the error with
// which the switch refuses it.
func (s *Switch) Do(m openflow.Message) error {
	b, err := openflow.Append(nil, 0, m)
	if err != nil {
		return err
	}
	s.lock()
	defer s.unlock()
	c := &channel{s: s, role: openflow.RoleEqual, async: defaultAsync()}
	if e := c.execute(0, m, b); e != nil {
		return e
	}
	return nil
}
