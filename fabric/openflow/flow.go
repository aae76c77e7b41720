package openflow

// TableID is the number of a flow table, 0 to 254 (enum ofp_table).
type TableID uint8

// The largest number of a table, and all tables in requests and deletions.
const (
	TableMax  TableID = 0xfe
	AllTables TableID = 0xff
)

// DefaultPriority is the priority that ovs-ofctl gives a flow without one (OFP_DEFAULT_PRIORITY).
const DefaultPriority = 0x8000

// FlowMod adds, changes or deletes flows (struct ofp_flow_mod, section 7.3.4.1).
type FlowMod struct {
	Cookie       uint64 // what the controller gives the flow; for changes and deletions see CookieMask
	CookieMask   uint64 // changes and deletions: only flows whose cookie has the bits of Cookie under this mask
	Table        TableID
	Command      FlowCommand
	IdleTimeout  uint16 // seconds without packets until the flow is deleted, or 0
	HardTimeout  uint16 // seconds until the flow is deleted, or 0
	Priority     uint16
	Buffer       uint32  // of a PacketIn that is processed by the flow, or NoBuffer
	OutPort      PortNo  // deletions: only flows that output to this port, or PortAny
	OutGroup     GroupID // deletions: only flows that use this group, or GroupAny
	Flags        FlowFlags
	Match        Match
	Instructions Instructions
}

// FlowCommand is what is done with flows (enum ofp_flow_mod_command).
type FlowCommand uint8

// What is done with flows. The strict commands apply to the flow with the same match and priority, the others to all
// flows that are as specific as the match or more.
const (
	FlowAdd FlowCommand = iota
	FlowModify
	FlowModifyStrict
	FlowDelete
	FlowDeleteStrict
)

// FlowFlags are options of a flow (enum ofp_flow_mod_flags).
type FlowFlags uint16

// The options of flows.
const (
	FlowSendRemoved  FlowFlags = 1 << 0 // a FlowRemoved is sent when the flow ends
	FlowCheckOverlap FlowFlags = 1 << 1 // an overlap with a flow of the same priority is an error
	FlowResetCounts  FlowFlags = 1 << 2
	FlowNoPktCounts  FlowFlags = 1 << 3
	FlowNoByteCounts FlowFlags = 1 << 4
)

// Type is TypeFlowMod.
func (m *FlowMod) Type() Type { return TypeFlowMod }

func (m *FlowMod) layout(c *codec) {
	u64(c, &m.Cookie, "ofp_flow_mod.cookie")
	u64(c, &m.CookieMask, "ofp_flow_mod.cookie_mask")
	u8(c, &m.Table, "ofp_flow_mod.table_id")
	u8(c, &m.Command, "ofp_flow_mod.command")
	u16(c, &m.IdleTimeout, "ofp_flow_mod.idle_timeout")
	u16(c, &m.HardTimeout, "ofp_flow_mod.hard_timeout")
	u16(c, &m.Priority, "ofp_flow_mod.priority")
	u32(c, &m.Buffer, "ofp_flow_mod.buffer_id")
	u32(c, &m.OutPort, "ofp_flow_mod.out_port")
	u32(c, &m.OutGroup, "ofp_flow_mod.out_group")
	u16(c, &m.Flags, "ofp_flow_mod.flags")
	c.pad(2)
	c.match(&m.Match)
	c.instructions(&m.Instructions)
}

// FlowRemoved reports that a flow with FlowSendRemoved has ended (struct ofp_flow_removed, section 7.4.2).
type FlowRemoved struct {
	Cookie      uint64
	Priority    uint16
	Reason      FlowRemovedReason
	Table       TableID
	Duration    Duration
	IdleTimeout uint16 // seconds
	HardTimeout uint16 // seconds
	Packets     uint64
	Bytes       uint64
	Match       Match
}

// FlowRemovedReason is why a flow ended (enum ofp_flow_removed_reason).
type FlowRemovedReason uint8

// Why a flow ended.
const (
	RemovedIdleTimeout FlowRemovedReason = iota
	RemovedHardTimeout
	RemovedDelete
	RemovedGroupDelete
)

// Type is TypeFlowRemoved.
func (m *FlowRemoved) Type() Type { return TypeFlowRemoved }

func (m *FlowRemoved) layout(c *codec) {
	u64(c, &m.Cookie, "ofp_flow_removed.cookie")
	u16(c, &m.Priority, "ofp_flow_removed.priority")
	u8(c, &m.Reason, "ofp_flow_removed.reason")
	u8(c, &m.Table, "ofp_flow_removed.table_id")
	c.duration(&m.Duration, "ofp_flow_removed.duration_sec")
	u16(c, &m.IdleTimeout, "ofp_flow_removed.idle_timeout")
	u16(c, &m.HardTimeout, "ofp_flow_removed.hard_timeout")
	u64(c, &m.Packets, "ofp_flow_removed.packet_count")
	u64(c, &m.Bytes, "ofp_flow_removed.byte_count")
	c.match(&m.Match)
}
