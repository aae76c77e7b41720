package openflow

import "fmt"

// PortNo is the number of a port (enum ofp_port_no, section 7.2.1). Ports have the numbers 1 to PortMax.
type PortNo uint32

// The reserved port numbers.
const (
	PortMax        PortNo = 0xffffff00
	PortInPort     PortNo = 0xfffffff8 // where the packet arrived
	PortTable      PortNo = 0xfffffff9 // the first table; only in a PacketOut
	PortNormal     PortNo = 0xfffffffa // as a switch without OpenFlow
	PortFlood      PortNo = 0xfffffffb // all but where it arrived, and blocked ones
	PortAll        PortNo = 0xfffffffc // all but where it arrived
	PortController PortNo = 0xfffffffd
	PortLocal      PortNo = 0xfffffffe // the switch itself
	PortAny        PortNo = 0xffffffff // in requests: any port, or none
)

var portNames = map[PortNo]string{
	PortInPort: "IN_PORT", PortTable: "TABLE", PortNormal: "NORMAL", PortFlood: "FLOOD", PortAll: "ALL",
	PortController: "CONTROLLER", PortLocal: "LOCAL", PortAny: "ANY",
}

// String is the number, or the name of a reserved port such as "LOCAL".
func (p PortNo) String() string {
	if name, ok := portNames[p]; ok {
		return name
	}
	return fmt.Sprint(uint32(p))
}

// Port describes a port of a switch (struct ofp_port, section 7.2.1).
type Port struct {
	No         PortNo
	HWAddr     MAC
	Name       string // up to 15 bytes
	Config     PortConfig
	State      PortState
	Current    PortFeatures // in force
	Advertised PortFeatures // to the other end of the link
	Supported  PortFeatures
	Peer       PortFeatures // advertised by the other end
	CurrSpeed  uint32       // kbit/s
	MaxSpeed   uint32       // kbit/s
}

// PortConfig is what a controller sets of a port (enum ofp_port_config).
type PortConfig uint32

// What a controller sets of a port.
const (
	PortDown       PortConfig = 1 << 0
	PortNoRecv     PortConfig = 1 << 2
	PortNoFwd      PortConfig = 1 << 5
	PortNoPacketIn PortConfig = 1 << 6
)

// PortState is the state of a port (enum ofp_port_state).
type PortState uint32

// The states of a port.
const (
	PortLinkDown PortState = 1 << 0
	PortBlocked  PortState = 1 << 1
	PortLive     PortState = 1 << 2 // for fast-failover groups
)

// PortFeatures are rates, media and functions of a link (enum ofp_port_features).
type PortFeatures uint32

// The features of links.
const (
	Feature10MbHD PortFeatures = 1 << iota
	Feature10MbFD
	Feature100MbHD
	Feature100MbFD
	Feature1GbHD
	Feature1GbFD
	Feature10GbFD
	Feature40GbFD
	Feature100GbFD
	Feature1TbFD
	FeatureOther
	FeatureCopper
	FeatureFiber
	FeatureAutoneg
	FeaturePause
	FeaturePauseAsym
)

func (c *codec) port(p *Port) {
	u32(c, &p.No, "ofp_port.port_no")
	c.pad(4)
	c.mac(&p.HWAddr, "ofp_port.hw_addr")
	c.pad(2)
	c.text(&p.Name, 16, "ofp_port.name")
	u32(c, &p.Config, "ofp_port.config")
	u32(c, &p.State, "ofp_port.state")
	u32(c, &p.Current, "ofp_port.curr")
	u32(c, &p.Advertised, "ofp_port.advertised")
	u32(c, &p.Supported, "ofp_port.supported")
	u32(c, &p.Peer, "ofp_port.peer")
	u32(c, &p.CurrSpeed, "ofp_port.curr_speed")
	u32(c, &p.MaxSpeed, "ofp_port.max_speed")
}

// PortStatus reports that a port was added, deleted or changed (section 7.4.3).
type PortStatus struct {
	Reason PortReason
	Port   Port
}

// PortReason is what happened to a port (enum ofp_port_reason).
type PortReason uint8

// What happened to a port.
const (
	PortAdd PortReason = iota
	PortDelete
	PortModify
)

// Type is TypePortStatus.
func (m *PortStatus) Type() Type { return TypePortStatus }

func (m *PortStatus) layout(c *codec) {
	u8(c, &m.Reason, "ofp_port_status.reason")
	c.pad(7)
	c.port(&m.Port)
}

// PortMod changes a port (struct ofp_port_mod, section 7.3.4.3).
type PortMod struct {
	No        PortNo
	HWAddr    MAC        // must be that of the port
	Config    PortConfig // the bits of Mask are set to these
	Mask      PortConfig
	Advertise PortFeatures // 0 leaves them as they are
}

// Type is TypePortMod.
func (m *PortMod) Type() Type { return TypePortMod }

func (m *PortMod) layout(c *codec) {
	u32(c, &m.No, "ofp_port_mod.port_no")
	c.pad(4)
	c.mac(&m.HWAddr, "ofp_port_mod.hw_addr")
	c.pad(2)
	u32(c, &m.Config, "ofp_port_mod.config")
	u32(c, &m.Mask, "ofp_port_mod.mask")
	u32(c, &m.Advertise, "ofp_port_mod.advertise")
	c.pad(4)
}
