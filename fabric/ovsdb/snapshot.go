package ovsdb

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/unit"
)

// Snapshot is the state of the database Open_vSwitch at one moment, as ovs-vswitchd.conf.db(5) defines it.
type Snapshot struct {
	OVSVersion string     // of ovs-vswitchd, such as "3.1.0"; "" if it never ran
	NextCfg    int64      // incremented by clients that changed the configuration
	CurCfg     int64      // the NextCfg up to which ovs-vswitchd has applied the configuration
	Bridges    []Bridge   // in the order of names
	Datapaths  []Datapath // in the order of types; none before OVS 2.13
	VLANLimit  int        // number of VLAN tags that flows match, 1 unless configured; 0 is no limit but the datapath's
	SSL        SSL        // for controllers and managers of type ssl
}

// SSL has the names of PEM files on the machine of Open vSwitch (table SSL). It is zero if none are configured.
type SSL struct {
	PrivateKey, Certificate, CA string
}

// Bridge is a bridge, which is an OpenFlow switch.
type Bridge struct {
	Name         string
	DatapathID   uint64       // in use, 0 if ovs-vswitchd has not assigned it
	DatapathType string       // "system" (the kernel's, also ""), "netdev" (userspace)
	FailMode     FailMode     // "" is Standalone
	STP, RSTP    bool         // a spanning tree protocol is enabled
	NoInBand     bool         // other_config:disable-in-band
	Managed      bool         // Connect has configured it, and Disconnect not since
	Protocols    []string     // versions of OpenFlow, such as "OpenFlow13"; none is the default of ovs-vswitchd
	Controllers  []Controller // in the order of targets
	Ports        []Port       // in the order of names, with the port of the bridge's own name
}

// FailMode is what a bridge does without a controller.
type FailMode string

// Values of FailMode. A bridge of FailMode "" is standalone.
const (
	Standalone FailMode = "standalone" // it learns MAC addresses, as an Ethernet switch does
	Secure     FailMode = "secure"     // it keeps its flows and adds none
)

// Controller is an OpenFlow controller of a bridge.
type Controller struct {
	Target    string // such as "ssl:192.0.2.1:6653"
	Service   bool   // it connects for maintenance only, and the FailMode does not depend on it
	InBand    bool   // frames of its connection may pass the bridge regardless of flows, unless NoInBand
	Managed   bool   // Connect has made or adopted it
	Connected bool
	Role      string // "other", "master" or "slave" (OpenFlow 1.3.5, section 6.3.6), "" if it never connected
	LastError string // of the connection, such as "Connection refused"; always "" in a Snapshot of a Monitor
}

// Port is a port of a bridge. A port of several interfaces is a bond.
type Port struct {
	Name       string
	Interfaces []Interface // in the order of names
}

// State is a link's or an interface's state, "" if it is not known.
type State string

// Values of State.
const (
	Up   State = "up"
	Down State = "down"
)

// Interface is a network device in a port.
type Interface struct {
	Name       string
	Type       string // "" (a network device of the host), "internal", "patch", "tap", ...
	OFPort     int    // number of the OpenFlow port, -1 if it could not be made (Error says why), 0 if not assigned yet
	MAC        string // in use, such as "02:00:00:00:00:01"; "" if it is not known
	LinkState  State  // whether a carrier is detected
	AdminState State
	LinkSpeed  unit.Rate // as negotiated, 0 if it is not known or not a rate
	MTU        int       // bytes, 0 if it is not known
	Error      string    // why ovs-vswitchd could not configure it, "" if it could
}

// Datapath is a datapath of ovs-vswitchd, which the bridges of its type share.
type Datapath struct {
	Type         string // "system" or "netdev"
	Version      string
	Capabilities map[string]string // such as "max_vlan_headers": "2"; see the table Datapath
}

// Bridge returns the bridge of a name, nil if there is none.
func (s *Snapshot) Bridge(name string) *Bridge {
	for i := range s.Bridges {
		if s.Bridges[i].Name == name {
			return &s.Bridges[i]
		}
	}
	return nil
}

// Snapshot reads the state once.
func (s *Session) Snapshot(ctx context.Context) (*Snapshot, error) {
	t, err := s.readTables(ctx)
	if err != nil {
		return nil, err
	}
	snapshot, err := t.snapshot()
	return snapshot, s.name("transact", err)
}

// readTables reads all rows in one transaction, so that they are of one moment.
func (s *Session) readTables(ctx context.Context) (tables, error) {
	requested, err := s.readSchema(ctx)
	if err != nil {
		return nil, err
	}
	results, err := s.transact(ctx, requested.selects()...)
	if err != nil {
		return nil, err
	}
	t, err := requested.decode(results)
	return t, s.name("transact", err)
}

// snapshot follows the references from the root row.
func (t tables) snapshot() (*Snapshot, error) {
	root := t.root()
	s := &Snapshot{OVSVersion: optional(root.ovsVersion), NextCfg: root.nextCfg, CurCfg: root.curCfg, VLANLimit: root.vlanLimit()}
	for _, id := range root.ssl {
		r, err := find[*sslRow](t, "SSL", id, "the table "+database)
		if err != nil {
			return nil, err
		}
		s.SSL = r.files()
	}
	for _, id := range root.bridges {
		b, err := t.bridge(id)
		if err != nil {
			return nil, err
		}
		s.Bridges = append(s.Bridges, b)
	}
	slices.SortFunc(s.Bridges, func(a, b Bridge) int { return strings.Compare(a.Name, b.Name) })
	for _, kind := range slices.Sorted(maps.Keys(root.datapaths)) {
		r, err := find[*datapathRow](t, "Datapath", root.datapaths[kind], "the table "+database)
		if err != nil {
			return nil, err
		}
		s.Datapaths = append(s.Datapaths, Datapath{Type: kind, Version: r.version, Capabilities: r.capabilities})
	}
	return s, nil
}

func (t tables) bridge(id uuid) (Bridge, error) {
	r, err := find[*bridgeRow](t, "Bridge", id, "the table "+database)
	if err != nil {
		return Bridge{}, err
	}
	b := Bridge{Name: r.name, DatapathType: r.datapathType, FailMode: FailMode(optional(r.failMode)),
		Protocols: slices.Sorted(slices.Values(r.protocols)), STP: r.stp, RSTP: r.rstp,
		NoInBand: r.otherConfig["disable-in-band"] == "true", Managed: managed(r.externalIDs)}
	if text := optional(r.datapathID); text != "" {
		if b.DatapathID, err = strconv.ParseUint(text, 16, 64); err != nil {
			return Bridge{}, fmt.Errorf("the datapath_id %.40q of the bridge %s is not a number of 16 hexadecimal digits", text, r.name)
		}
	}
	for _, id := range r.controllers {
		c, err := find[*controllerRow](t, "Controller", id, "the bridge "+r.name)
		if err != nil {
			return Bridge{}, err
		}
		b.Controllers = append(b.Controllers, c.controller())
	}
	slices.SortFunc(b.Controllers, func(a, b Controller) int { return strings.Compare(a.Target, b.Target) })
	for _, id := range r.ports {
		p, err := t.port(id, r.name)
		if err != nil {
			return Bridge{}, err
		}
		b.Ports = append(b.Ports, p)
	}
	slices.SortFunc(b.Ports, func(a, b Port) int { return strings.Compare(a.Name, b.Name) })
	return b, nil
}

func (r *controllerRow) controller() Controller {
	return Controller{Target: r.target, Service: r.service(), InBand: r.inBand(), Managed: managed(r.externalIDs),
		Connected: r.connected, Role: optional(r.role), LastError: r.status["last_error"]}
}

// service reports whether it is no primary controller (type in the table Controller).
func (r *controllerRow) service() bool {
	if kind := optional(r.kind); kind != "" {
		return kind == "service"
	}
	return strings.HasPrefix(r.target, "p") // ptcp, pssl, punix
}

// inBand reports whether ovs-vswitchd lets its frames pass. It does so by default (vswitchd/bridge.c,
// bridge_configure_remotes), except for Unix sockets, which need no frames.
func (r *controllerRow) inBand() bool {
	return optional(r.mode) != "out-of-band" && !strings.HasPrefix(r.target, "unix:") && !r.service()
}

func (r *sslRow) files() SSL { return SSL{r.key, r.certificate, r.ca} }

// vlanLimit returns other_config:vlan-limit. ovs-vswitchd uses its default, 1, for what is not a number.
func (r *rootRow) vlanLimit() int {
	n, err := strconv.Atoi(r.otherConfig["vlan-limit"])
	if err != nil {
		return 1
	}
	return n
}

func (t tables) port(id uuid, bridge string) (Port, error) {
	r, err := find[*portRow](t, "Port", id, "the bridge "+bridge)
	if err != nil {
		return Port{}, err
	}
	p := Port{Name: r.name}
	for _, id := range r.interfaces {
		i, err := find[*interfaceRow](t, "Interface", id, "the port "+r.name)
		if err != nil {
			return Port{}, err
		}
		p.Interfaces = append(p.Interfaces, Interface{
			Name: i.name, Type: i.kind, OFPort: int(optional(i.ofPort)), MAC: optional(i.mac),
			LinkState: State(optional(i.linkState)), AdminState: State(optional(i.adminState)),
			LinkSpeed: linkSpeed(optional(i.linkSpeed)), MTU: int(optional(i.mtu)), Error: optional(i.err),
		})
	}
	slices.SortFunc(p.Interfaces, func(a, b Interface) int { return cmp.Compare(a.Name, b.Name) })
	return p, nil
}

// linkSpeed converts a link_speed, in bit/s. Any client can write the column, and a wrong number in it must not hide
// the other interfaces.
func linkSpeed(bps int64) unit.Rate {
	if bps < 0 || unit.Rate(bps) > unit.MaxRate {
		return 0
	}
	return unit.Rate(bps)
}
