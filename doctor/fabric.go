package doctor

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/fabric/ovsdb"
)

// Fabric is the value of About for checks of this machine's Open vSwitch. A bridge has a value of its own.
const Fabric = "fabric"

// switches is what is known of this machine's Open vSwitch.
type switches struct {
	*ovsdb.Snapshot
	running   bool              // ovs-vswitchd
	offloaded map[string]string // the host's device behind a port that leaves checksums to hardware
}

// checks returns the checks of all bridges. Those without a controller are not switches of a network, and are
// not checked.
func (s switches) checks() []Check {
	version := Check{About: Fabric, Name: "Open vSwitch", State: OK, Found: s.OVSVersion, Meaning: "its bridges can be switches of a network"}
	if s.OVSVersion != "" && olderThan(s.OVSVersion, 2, 8) { // NEWS of 2.8.0: "Add support for 802.1ad (QinQ tunneling)"
		version.State, version.Meaning = Limited, "it matches one VLAN tag: hosts in VLANs cannot reach hosts at other switches"
		version.Remedy = "install 2.8 or newer"
	}
	checks := []Check{version}
	if !s.running {
		checks = append(checks, Check{About: Fabric, Name: "ovs-vswitchd", State: Missing, Found: "not running",
			Meaning: "bridges do not connect to controllers, and what follows is of its last run", Remedy: "systemctl start openvswitch-switch"})
	}
	connected := slices.ContainsFunc(s.Bridges, func(b ovsdb.Bridge) bool { return len(primary(b)) > 0 })
	if connected && s.VLANLimit == 1 {
		checks = append(checks, Check{About: Fabric, Name: "VLAN tags", State: Limited, Found: "vlan-limit is 1",
			Meaning: "hosts in VLANs cannot reach hosts at other switches", Remedy: "ovs-vsctl set Open_vSwitch . other_config:vlan-limit=2"})
	}
	for _, b := range s.Bridges {
		checks = append(checks, s.bridge(b)...)
	}
	return checks
}

// primary returns the controllers that set flows.
func primary(b ovsdb.Bridge) (out []ovsdb.Controller) {
	for _, c := range b.Controllers {
		if !c.Service {
			out = append(out, c)
		}
	}
	return out
}

func (s switches) bridge(b ovsdb.Bridge) (checks []Check) {
	add := func(name string, state State, found, means, remedy string) {
		checks = append(checks, Check{About: Fabric + ", bridge " + b.Name, Name: name, State: state, Found: found, Meaning: means, Remedy: remedy})
	}
	controllers := primary(b)
	if len(controllers) == 0 {
		add("controller", OK, "none", "it is not a switch of a network",
			fmt.Sprintf("to connect it: headgate network connect %s --controller ADDRESS", b.Name))
		return checks
	}
	s.datapath(b, add)
	if len(b.Protocols) > 0 && !slices.Contains(b.Protocols, "OpenFlow13") {
		add("OpenFlow 1.3", Missing, "enabled: "+strings.Join(b.Protocols, ", "), "the controller speaks no other version",
			fmt.Sprintf("ovs-vsctl add bridge %s protocols OpenFlow13", b.Name))
	}
	s.controllers(b, controllers, add)
	if b.FailMode != ovsdb.Secure {
		add("fail mode", Limited, "standalone", "without a controller it floods, and frames circulate in a network with a loop",
			fmt.Sprintf("ovs-vsctl set-fail-mode %s secure", b.Name))
	}
	if !b.NoInBand && slices.ContainsFunc(controllers, func(c ovsdb.Controller) bool { return c.InBand }) {
		add("in-band control", Limited, "enabled", "hidden flows flood ARP of controllers, and frames circulate in a network with a loop",
			fmt.Sprintf("ovs-vsctl set bridge %s other_config:disable-in-band=true", b.Name))
	}
	if b.STP || b.RSTP {
		add("spanning tree", Limited, "enabled", "it blocks ports that the controller's flows use",
			fmt.Sprintf("ovs-vsctl set bridge %s stp_enable=false rstp_enable=false", b.Name))
	}
	s.ports(b, add)
	return checks
}

type addCheck func(name string, state State, found, means, remedy string)

// datapath checks what the bridge is, and what its datapath can do.
func (s switches) datapath(b ovsdb.Bridge, add addCheck) {
	id := fmt.Sprintf("%016x", b.DatapathID)
	var twins []string
	for _, other := range s.Bridges {
		if other.DatapathID == b.DatapathID && other.Name != b.Name {
			twins = append(twins, other.Name)
		}
	}
	switch {
	case b.DatapathID == 0:
		if s.running {
			add("datapath", Missing, "none", "ovs-vswitchd cannot create the bridge",
				"see /var/log/openvswitch/ovs-vswitchd.log; on a kernel without the module openvswitch: ovs-vsctl set bridge "+b.Name+" datapath_type=netdev")
		}
	case len(twins) > 0:
		add("datapath id", Missing, id+", as that of "+strings.Join(twins, ", "), "the controller accepts one of them",
			fmt.Sprintf("ovs-vsctl set bridge %s other_config:datapath-id=ID, with another ID of 16 hexadecimal digits", b.Name))
	default:
		add("datapath id", OK, id, "the controller's name of this switch", "")
	}
	kind := b.DatapathType
	if kind == "" {
		kind = "system"
	}
	for _, d := range s.Datapaths {
		if tags := d.Capabilities["max_vlan_headers"]; d.Type == kind && (tags == "0" || tags == "1") {
			add("VLAN tags", Limited, tags+" in the datapath "+kind, "hosts in VLANs cannot reach hosts at other switches", "use a newer kernel, or datapath_type=netdev")
		}
	}
	fast := func(p ovsdb.Port) bool {
		return slices.ContainsFunc(p.Interfaces, func(i ovsdb.Interface) bool { return strings.HasPrefix(i.Type, "dpdk") || i.Type == "afxdp" })
	}
	if kind == "netdev" && !slices.ContainsFunc(b.Ports, fast) {
		add("datapath", Limited, "netdev, without DPDK", "it forwards in user space: some 300 Mbit/s on two processors",
			fmt.Sprintf("for more, on a kernel with the module openvswitch: ovs-vsctl set bridge %s datapath_type=system", b.Name))
	}
}

// controllers checks the connections to controllers.
func (s switches) controllers(b ovsdb.Bridge, all []ovsdb.Controller, add addCheck) {
	foreign := func(c ovsdb.Controller) bool { return b.Managed && !c.Managed }
	some := slices.ContainsFunc(all, func(c ovsdb.Controller) bool { return c.Connected && !foreign(c) })
	for _, c := range all {
		if foreign(c) {
			add("other controller", Limited, c.Target, "two controllers that do not know each other undo each other's flows",
				fmt.Sprintf("headgate network connect %s --replace --controller ADDRESS", b.Name))
			continue
		}
		lost, remedy := "not connected", "check the address, firewalls, and that the controller accepts switches (headgate network show); errors of TLS are in /var/log/openvswitch/ovs-vswitchd.log"
		if strings.HasPrefix(c.Target, "ssl:") && s.SSL == (ovsdb.SSL{}) {
			remedy = fmt.Sprintf("headgate network certificate %016x --server URL --to DIR; then headgate network connect %s with --ca, --cert and --key", b.DatapathID, b.Name)
		}
		if c.LastError != "" {
			lost += " (" + c.LastError + ")"
		}
		switch {
		case c.Connected:
			add("controller", OK, c.Target, "connected"+role(c), "")
		case !s.running: // the cause has a check of its own
		case some:
			add("controller", Limited, c.Target, lost+": one less is left for a failure", remedy)
		default:
			add("controller", Missing, c.Target, lost+": the switch keeps its flows and gets no others", remedy)
		}
	}
}

// role describes the role of a controller in words: its values are those of OpenFlow 1.3.5, section 6.3.6.
func role(c ovsdb.Controller) string {
	return map[string]string{"master": ", sets flows", "slave": ", waits to take over"}[c.Role]
}

// ports checks ports that do not work.
func (s switches) ports(b ovsdb.Bridge, add addCheck) {
	for _, p := range b.Ports {
		for _, i := range p.Interfaces {
			if i.Error != "" {
				add("port "+i.Name, Limited, "failed", "the switch does not have it: "+i.Error, "create the device, or remove the port: ovs-vsctl del-port "+i.Name)
			}
			if i.Type == "" && i.AdminState == ovsdb.Down {
				add("port "+i.Name, Limited, "the device is down", "no frame passes: Open vSwitch does not set devices up", "ip link set "+i.Name+" up")
			}
			if dev := s.offloaded[i.Name]; dev != "" {
				add("port "+i.Name, Limited, dev+" offloads checksums", "frames with unfinished checksums arrive, and receivers drop them", "ethtool -K "+dev+" tx off")
			}
		}
	}
}
