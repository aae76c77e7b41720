package openflow

// EchoRequest asks the other side for an EchoReply with the same data (section 7.5.2).
type EchoRequest struct{ Data []byte }

// EchoReply answers an EchoRequest with its data (section 7.5.3).
type EchoReply struct{ Data []byte }

// BarrierRequest asks the switch to finish all messages before it first (section 7.3.8).
type BarrierRequest struct{}

// BarrierReply reports that all messages before the request are finished (section 7.3.8).
type BarrierReply struct{}

// Type is TypeEchoRequest.
func (m *EchoRequest) Type() Type { return TypeEchoRequest }

// Type is TypeEchoReply.
func (m *EchoReply) Type() Type { return TypeEchoReply }

// Type is TypeBarrierRequest.
func (m *BarrierRequest) Type() Type { return TypeBarrierRequest }

// Type is TypeBarrierReply.
func (m *BarrierReply) Type() Type { return TypeBarrierReply }

func (m *EchoRequest) layout(c *codec)  { c.rest(&m.Data, "data") }
func (m *EchoReply) layout(c *codec)    { c.rest(&m.Data, "data") }
func (m *BarrierRequest) layout(*codec) {}
func (m *BarrierReply) layout(*codec)   {}

// FeaturesRequest asks for a FeaturesReply (section 7.3.1).
type FeaturesRequest struct{}

// FeaturesReply describes a switch (struct ofp_switch_features, section 7.3.1).
type FeaturesReply struct {
	DatapathID   uint64
	Buffers      uint32 // packets that the switch can keep while it waits for a PacketOut
	Tables       uint8
	AuxiliaryID  uint8 // 0 on the main connection
	Capabilities Capabilities
	Reserved     uint32
}

// Capabilities are functions of a switch (enum ofp_capabilities).
type Capabilities uint32

// The capabilities of switches.
const (
	CapFlowStats   Capabilities = 1 << 0
	CapTableStats  Capabilities = 1 << 1
	CapPortStats   Capabilities = 1 << 2
	CapGroupStats  Capabilities = 1 << 3
	CapIPReasm     Capabilities = 1 << 5
	CapQueueStats  Capabilities = 1 << 6
	CapPortBlocked Capabilities = 1 << 8
)

// Type is TypeFeaturesRequest.
func (m *FeaturesRequest) Type() Type { return TypeFeaturesRequest }

// Type is TypeFeaturesReply.
func (m *FeaturesReply) Type() Type { return TypeFeaturesReply }

func (m *FeaturesRequest) layout(*codec) {}

func (m *FeaturesReply) layout(c *codec) {
	u64(c, &m.DatapathID, "ofp_switch_features.datapath_id")
	u32(c, &m.Buffers, "ofp_switch_features.n_buffers")
	u8(c, &m.Tables, "ofp_switch_features.n_tables")
	u8(c, &m.AuxiliaryID, "ofp_switch_features.auxiliary_id")
	c.pad(2)
	u32(c, &m.Capabilities, "ofp_switch_features.capabilities")
	u32(c, &m.Reserved, "ofp_switch_features.reserved")
}

// GetConfigRequest asks for a GetConfigReply (section 7.3.2).
type GetConfigRequest struct{}

// Config is how a switch treats fragments and packets to the controller (struct ofp_switch_config, section 7.3.2).
type Config struct {
	Flags       ConfigFlags
	MissSendLen uint16 // bytes of a packet in a PacketIn, or NoBufferLen
}

// ConfigFlags is how IP fragments are treated (enum ofp_config_flags).
type ConfigFlags uint16

// How IP fragments are treated.
const (
	FragNormal ConfigFlags = 0
	FragDrop   ConfigFlags = 1
	FragReasm  ConfigFlags = 2
)

// GetConfigReply has the configuration of a switch (section 7.3.2).
type GetConfigReply struct{ Config }

// SetConfig changes the configuration of a switch (section 7.3.2).
type SetConfig struct{ Config }

// Type is TypeGetConfigRequest.
func (m *GetConfigRequest) Type() Type { return TypeGetConfigRequest }

// Type is TypeGetConfigReply.
func (m *GetConfigReply) Type() Type { return TypeGetConfigReply }

// Type is TypeSetConfig.
func (m *SetConfig) Type() Type { return TypeSetConfig }

func (m *GetConfigRequest) layout(*codec) {}

func (m *Config) layout(c *codec) {
	u16(c, &m.Flags, "ofp_switch_config.flags")
	u16(c, &m.MissSendLen, "ofp_switch_config.miss_send_len")
}

// ControllerRole is what a controller may do with a switch (enum ofp_controller_role).
type ControllerRole uint32

// The roles of controllers.
const (
	RoleNoChange ControllerRole = iota // asks for the present role
	RoleEqual                          // all, as the other controllers of this role
	RoleMaster                         // all; the former master becomes a slave
	RoleSlave                          // only read
)

// Role is the role of a controller (struct ofp_role_request, section 7.3.9).
type Role struct {
	Role         ControllerRole
	GenerationID uint64 // of the election of the master; a switch refuses an older one than it has seen
}

// RoleRequest asks for another role (section 7.3.9).
type RoleRequest struct{ Role }

// RoleReply has the role in force (section 7.3.9).
type RoleReply struct{ Role }

// Type is TypeRoleRequest.
func (m *RoleRequest) Type() Type { return TypeRoleRequest }

// Type is TypeRoleReply.
func (m *RoleReply) Type() Type { return TypeRoleReply }

func (m *Role) layout(c *codec) {
	u32(c, &m.Role, "ofp_role_request.role")
	c.pad(4)
	u64(c, &m.GenerationID, "ofp_role_request.generation_id")
}

// GetAsyncRequest asks for a GetAsyncReply (section 7.3.10).
type GetAsyncRequest struct{}

// Async selects which messages a switch sends without a request (struct ofp_async_config, section 7.3.10). In each
// pair the first mask is for the roles equal and master, the second for slave; bit n is reason n of the message.
type Async struct {
	PacketIn    [2]uint32 // bits by PacketInReason
	PortStatus  [2]uint32 // bits by PortReason
	FlowRemoved [2]uint32 // bits by FlowRemovedReason
}

// GetAsyncReply has the messages that a switch sends (section 7.3.10).
type GetAsyncReply struct{ Async }

// SetAsync selects the messages that a switch sends (section 7.3.10).
type SetAsync struct{ Async }

// Type is TypeGetAsyncRequest.
func (m *GetAsyncRequest) Type() Type { return TypeGetAsyncRequest }

// Type is TypeGetAsyncReply.
func (m *GetAsyncReply) Type() Type { return TypeGetAsyncReply }

// Type is TypeSetAsync.
func (m *SetAsync) Type() Type { return TypeSetAsync }

func (m *GetAsyncRequest) layout(*codec) {}

func (m *Async) layout(c *codec) {
	for i := range m.PacketIn {
		u32(c, &m.PacketIn[i], "ofp_async_config.packet_in_mask")
	}
	for i := range m.PortStatus {
		u32(c, &m.PortStatus[i], "ofp_async_config.port_status_mask")
	}
	for i := range m.FlowRemoved {
		u32(c, &m.FlowRemoved[i], "ofp_async_config.flow_removed_mask")
	}
}
