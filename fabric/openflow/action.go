package openflow

import "fmt"

// Action is what is done with a packet (struct ofp_action_header, section 7.2.5). Actions are values, not pointers.
// String is the action as ovs-ofctl prints it.
type Action interface {
	Type() ActionType
	String() string
	// fields passes over what follows the header, and returns the action with what was read.
	fields(c *codec) Action
}

// ActionType is the type of an action (enum ofp_action_type).
type ActionType uint16

// The types of actions.
const (
	ActionOutput       ActionType = 0
	ActionCopyTTLOut   ActionType = 11
	ActionCopyTTLIn    ActionType = 12
	ActionSetMPLSTTL   ActionType = 15
	ActionDecMPLSTTL   ActionType = 16
	ActionPushVLAN     ActionType = 17
	ActionPopVLAN      ActionType = 18
	ActionPushMPLS     ActionType = 19
	ActionPopMPLS      ActionType = 20
	ActionSetQueue     ActionType = 21
	ActionGroup        ActionType = 22
	ActionSetNwTTL     ActionType = 23
	ActionDecNwTTL     ActionType = 24
	ActionSetField     ActionType = 25
	ActionPushPBB      ActionType = 26
	ActionPopPBB       ActionType = 27
	ActionExperimenter ActionType = 0xffff
)

// actionTypes has a name and an empty action of each type.
var actionTypes = map[ActionType]struct {
	name  string
	empty Action
}{
	ActionOutput:       {"output", Output{}},
	ActionCopyTTLOut:   {"copy_ttl_out", CopyTTLOut{}},
	ActionCopyTTLIn:    {"copy_ttl_in", CopyTTLIn{}},
	ActionSetMPLSTTL:   {"set_mpls_ttl", SetMPLSTTL{}},
	ActionDecMPLSTTL:   {"dec_mpls_ttl", DecMPLSTTL{}},
	ActionPushVLAN:     {"push_vlan", PushVLAN{}},
	ActionPopVLAN:      {"pop_vlan", PopVLAN{}},
	ActionPushMPLS:     {"push_mpls", PushMPLS{}},
	ActionPopMPLS:      {"pop_mpls", PopMPLS{}},
	ActionSetQueue:     {"set_queue", SetQueue{}},
	ActionGroup:        {"group", Group{}},
	ActionSetNwTTL:     {"mod_nw_ttl", SetNwTTL{}},
	ActionDecNwTTL:     {"dec_ttl", DecNwTTL{}},
	ActionSetField:     {"set_field", SetField{}},
	ActionPushPBB:      {"push_pbb", PushPBB{}},
	ActionPopPBB:       {"pop_pbb", PopPBB{}},
	ActionExperimenter: {"experimenter", ExperimenterAction{}},
}

// String is the name by which ovs-ofctl prints the action, such as "push_vlan".
func (t ActionType) String() string {
	if a, ok := actionTypes[t]; ok {
		return a.name
	}
	return fmt.Sprintf("action(%d)", uint16(t))
}

// Output sends the packet to a port.
type Output struct {
	Port   PortNo
	MaxLen uint16 // bytes of the packet for PortController, or NoBufferLen
}

// NoBufferLen as MaxLen or MissSendLen sends whole packets to the controller, and keeps none in the switch
// (OFPCML_NO_BUFFER).
const NoBufferLen = 0xffff

// CopyTTLOut copies the TTL from the next-to-outermost to the outermost header.
type CopyTTLOut struct{}

// CopyTTLIn copies the TTL from the outermost to the next-to-outermost header.
type CopyTTLIn struct{}

// SetMPLSTTL sets the TTL of the outermost MPLS header.
type SetMPLSTTL struct{ TTL uint8 }

// DecMPLSTTL lowers the TTL of the outermost MPLS header by one.
type DecMPLSTTL struct{}

// PushVLAN adds a VLAN tag with this Ethernet type, 0x8100 or 0x88a8.
type PushVLAN struct{ EthType uint16 }

// PopVLAN removes the outermost VLAN tag.
type PopVLAN struct{}

// PushMPLS adds an MPLS header with this Ethernet type, 0x8847 or 0x8848.
type PushMPLS struct{ EthType uint16 }

// PopMPLS removes the outermost MPLS header; EthType is the type of what follows it.
type PopMPLS struct{ EthType uint16 }

// SetQueue selects the queue of the ports to which the packet is sent.
type SetQueue struct{ Queue QueueID }

// Group processes the packet by a group.
type Group struct{ Group GroupID }

// SetNwTTL sets the TTL of IPv4, or the hop limit of IPv6.
type SetNwTTL struct{ TTL uint8 }

// DecNwTTL lowers the TTL of IPv4, or the hop limit of IPv6, by one.
type DecNwTTL struct{}

// SetField sets a field, which has no mask.
type SetField struct{ Field Field }

// PushPBB adds a provider backbone bridge header with this Ethernet type, 0x88e7.
type PushPBB struct{ EthType uint16 }

// PopPBB removes the outermost provider backbone bridge header.
type PopPBB struct{}

// ExperimenterAction is an action of an extension, kept as bytes.
type ExperimenterAction struct {
	Experimenter uint32
	Data         []byte // 8n bytes
}

// UnknownAction is an action of a type that OpenFlow 1.3 does not define, or a SetField with a mask, which OpenFlow
// 1.5 defines. It is encoded to the bytes that were decoded.
type UnknownAction struct {
	Kind ActionType
	Body []byte // what follows the length: 8n+4 bytes
}

// Type is ActionOutput.
func (Output) Type() ActionType { return ActionOutput }

// Type is ActionCopyTTLOut.
func (CopyTTLOut) Type() ActionType { return ActionCopyTTLOut }

// Type is ActionCopyTTLIn.
func (CopyTTLIn) Type() ActionType { return ActionCopyTTLIn }

// Type is ActionSetMPLSTTL.
func (SetMPLSTTL) Type() ActionType { return ActionSetMPLSTTL }

// Type is ActionDecMPLSTTL.
func (DecMPLSTTL) Type() ActionType { return ActionDecMPLSTTL }

// Type is ActionPushVLAN.
func (PushVLAN) Type() ActionType { return ActionPushVLAN }

// Type is ActionPopVLAN.
func (PopVLAN) Type() ActionType { return ActionPopVLAN }

// Type is ActionPushMPLS.
func (PushMPLS) Type() ActionType { return ActionPushMPLS }

// Type is ActionPopMPLS.
func (PopMPLS) Type() ActionType { return ActionPopMPLS }

// Type is ActionSetQueue.
func (SetQueue) Type() ActionType { return ActionSetQueue }

// Type is ActionGroup.
func (Group) Type() ActionType { return ActionGroup }

// Type is ActionSetNwTTL.
func (SetNwTTL) Type() ActionType { return ActionSetNwTTL }

// Type is ActionDecNwTTL.
func (DecNwTTL) Type() ActionType { return ActionDecNwTTL }

// Type is ActionSetField.
func (SetField) Type() ActionType { return ActionSetField }

// Type is ActionPushPBB.
func (PushPBB) Type() ActionType { return ActionPushPBB }

// Type is ActionPopPBB.
func (PopPBB) Type() ActionType { return ActionPopPBB }

// Type is ActionExperimenter.
func (ExperimenterAction) Type() ActionType { return ActionExperimenter }

// Type is the type in the header.
func (a UnknownAction) Type() ActionType { return a.Kind }
