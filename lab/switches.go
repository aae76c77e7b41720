package lab

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// SwitchSpec is an OpenFlow switch: a bridge of the lab's own Open vSwitch (see ovs.go). It is an end
// of links, as nodes are. Its ports have the OpenFlow numbers 1, 2, ... in the order of its links.
type SwitchSpec struct {
	// Name is like that of a node, and different from those of all nodes.
	Name string
	// ID is the datapath id; 0 is the position in Topology.Switches, from 1.
	ID uint64 `json:",omitempty"`
	// FailMode is what the switch does without a controller; "" is Secure.
	FailMode FailMode `json:",omitempty"`
	// RSTP enables the rapid spanning tree protocol (IEEE 802.1D-2004).
	RSTP bool `json:",omitempty"`
	// Protocols are the accepted versions of OpenFlow, such as "OpenFlow13"; none is Open vSwitch's
	// default, OpenFlow10 to OpenFlow15.
	Protocols []string `json:",omitempty"`
	// Controllers are NODE:PORT, a TCP port of a node of the lab, or unix:NAME, a socket in
	// Lab.SwitchesDir: Open vSwitch refuses sockets in other directories.
	Controllers []string `json:",omitempty"`
}

// FailMode is what a switch does without a controller (fail_mode in ovs-vswitchd.conf.db(5)).
type FailMode string

// The fail modes.
const (
	// Secure switches keep their flows; with none they forward nothing.
	Secure FailMode = "secure"
	// Standalone switches learn MAC addresses, and flood other packets.
	Standalone FailMode = "standalone"
)

// switchesName is the name of the switches' namespace, and of a node's device towards it. In a lab
// with switches no node or switch has it.
const switchesName = "switches"

const (
	// maxSwitches: the networks of separate groups of switches are 10.128.0.0/16 and up.
	maxSwitches = 127
	// maxPorts keeps a port's short name (portDevices) within 15 characters.
	maxPorts = 999
	// maxDevice is the length of a device's name: IFNAMSIZ of linux/if.h without the final zero.
	maxDevice = 15
)

// protocols are the versions of OpenFlow that Open vSwitch has.
var protocols = []string{"OpenFlow10", "OpenFlow11", "OpenFlow12", "OpenFlow13", "OpenFlow14", "OpenFlow15"}

// datapathID returns the datapath id of switch i.
func (t *Topology) datapathID(i int) uint64 {
	if id := t.Switches[i].ID; id != 0 {
		return id
	}
	return uint64(i + 1)
}

// formatID returns a datapath id as Open vSwitch prints it.
func formatID(id uint64) string { return fmt.Sprintf("%016x", id) }

// isSwitch returns a function that reports whether a name is that of a switch.
func (t *Topology) isSwitch() func(name string) bool {
	names := map[string]bool{}
	for _, s := range t.Switches {
		names[s.Name] = true
	}
	return func(name string) bool { return names[name] }
}

// link returns the properties of link i. At a switch there are no offloads: the datapath in user space
// passes packets on with checksums that are not computed, and does not segment.
func (t *Topology) link(i int) LinkSpec {
	l := t.Links[i]
	is := t.isSwitch()
	l.NoOffload = l.NoOffload || is(l.Ends[0]) || is(l.Ends[1])
	return l
}

// Port is a port of a switch.
type Port struct {
	// Number is the OpenFlow port number.
	Number uint32 `json:"number"`
	// Device is the name in the switches' namespace.
	Device string `json:"device"`
	// Peer is the node or switch at the other end of Link.
	Peer string `json:"peer"`
	Link string `json:"link"`

	end end
}

// ports returns the ports of each switch, by its name.
func (t *Topology) ports() map[string][]Port {
	devs, names, is := t.devices(), t.LinkNames(), t.isSwitch()
	out := map[string][]Port{}
	for i, l := range t.Links {
		for e := range 2 {
			if own := l.Ends[e]; is(own) {
				out[own] = append(out[own], Port{uint32(len(out[own]) + 1), devs[i][e], l.Ends[1-e], names[i], end{i, e}})
			}
		}
	}
	return out
}

// portDevices names the devices of ports: SWITCH-PEER, with "-2" for a second link, or SWITCH.NUMBER,
// where that is too long or the name of something else in the switches' namespace. No other name has a
// dot.
type portDevices struct {
	taken  map[string]bool
	number map[string]int
}

func (t *Topology) portDevices() *portDevices {
	d := &portDevices{map[string]bool{}, map[string]int{}}
	for _, name := range takenSwitchNames {
		d.taken[name] = true
	}
	for _, s := range t.Switches { // a bridge has a device of its name
		d.taken[s.Name] = true
	}
	for _, n := range t.Nodes { // management links
		d.taken[n.Name] = true
	}
	return d
}

// next names the next port of a switch. wanted is the peer's name, with "-2" for a second link.
func (d *portDevices) next(name, wanted string) string {
	d.number[name]++
	dev := name + "-" + wanted
	if len(dev) > maxDevice || d.taken[dev] {
		dev = fmt.Sprintf("%s.%d", name, d.number[name])
	}
	d.taken[dev] = true
	return dev
}

// takenSwitchNames are devices of Open vSwitch's own.
var takenSwitchNames = []string{"ovs-netdev", "ovs-system"}

// controller is an OpenFlow controller of a switch: a TCP port of a node, or a Unix socket.
type controller struct {
	node   string
	port   uint16
	socket string
}

var socketName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,30}$`)

func parseController(s string) (c controller, err error) {
	if name, ok := strings.CutPrefix(s, "unix:"); ok {
		if !socketName.MatchString(name) {
			return c, fmt.Errorf("%q is not a socket in the directory of the lab's switches, and Open vSwitch connects to no other: write unix: and a file name, for example unix:controller", s)
		}
		return controller{socket: name}, nil
	}
	node, port, ok := strings.Cut(s, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if !ok || err != nil || n == 0 {
		return c, fmt.Errorf("%q is not a controller: write a node and a port, for example c1:6653, or unix: and a file name", s)
	}
	return controller{node: node, port: uint16(n)}, nil
}

// controllerNodes returns the names of the nodes to which the lab makes a management link, sorted: those
// that a switch has as a controller.
func (t *Topology) controllerNodes() (out []string) {
	for _, s := range t.Switches {
		for _, text := range s.Controllers {
			if c, err := parseController(text); err == nil && c.node != "" {
				out = append(out, c.node)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
