package openflow

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// String is the actions as ovs-ofctl prints them, such as "push_vlan:0x8100,output:2".
func (a Actions) String() string {
	if len(a) == 0 {
		return "drop"
	}
	return joined(a)
}

func joined[T fmt.Stringer](all []T) string {
	words := make([]string, len(all))
	for i, v := range all {
		words[i] = v.String()
	}
	return strings.Join(words, ",")
}

func (a Output) String() string {
	switch {
	case a.Port == PortController:
		return fmt.Sprintf("CONTROLLER:%d", a.MaxLen)
	case portNames[a.Port] != "":
		return a.Port.String()
	}
	return "output:" + a.Port.String()
}

func (CopyTTLOut) String() string { return "copy_ttl_out" }
func (CopyTTLIn) String() string  { return "copy_ttl_in" }
func (DecMPLSTTL) String() string { return "dec_mpls_ttl" }
func (PopVLAN) String() string    { return "pop_vlan" }
func (DecNwTTL) String() string   { return "dec_ttl" }
func (PopPBB) String() string     { return "pop_pbb" }

func (a SetMPLSTTL) String() string { return fmt.Sprintf("set_mpls_ttl(%d)", a.TTL) }
func (a SetNwTTL) String() string   { return fmt.Sprintf("mod_nw_ttl:%d", a.TTL) }
func (a PushVLAN) String() string   { return fmt.Sprintf("push_vlan:0x%04x", a.EthType) }
func (a PushMPLS) String() string   { return fmt.Sprintf("push_mpls:0x%04x", a.EthType) }
func (a PushPBB) String() string    { return fmt.Sprintf("push_pbb:0x%04x", a.EthType) }
func (a PopMPLS) String() string    { return fmt.Sprintf("pop_mpls:0x%04x", a.EthType) }
func (a SetQueue) String() string   { return fmt.Sprintf("set_queue:%d", a.Queue) }
func (a Group) String() string      { return fmt.Sprintf("group:%d", a.Group) }

func (a SetField) String() string {
	f := a.Field
	if f.ID().info() == nil || len(f.value()) != f.ID().info().bytes() {
		return "set_field:" + f.String()
	}
	v := f.text()
	if f.ID() == FieldVLANVID {
		v = fmt.Sprint(f.Uint())
	}
	return "set_field:" + v + "->" + f.ID().info().set
}

func (a ExperimenterAction) String() string {
	return fmt.Sprintf("experimenter(%#x,%s)", a.Experimenter, hex.EncodeToString(a.Data))
}

func (a UnknownAction) String() string {
	return fmt.Sprintf("action(%d,%s)", uint16(a.Kind), hex.EncodeToString(a.Body))
}

// String is the instructions as ovs-ofctl prints them, such as "meter:1,output:2,goto_table:3".
func (i Instructions) String() string {
	var some Instructions
	for _, v := range i {
		if a, ok := v.(ApplyActions); !ok || len(a.Actions) > 0 {
			some = append(some, v)
		}
	}
	if some == nil {
		return "drop"
	}
	return joined(some)
}

func (i GotoTable) String() string    { return fmt.Sprintf("goto_table:%d", i.Table) }
func (i WriteActions) String() string { return "write_actions(" + i.Actions.String() + ")" }
func (i ApplyActions) String() string { return i.Actions.String() }
func (ClearActions) String() string   { return "clear_actions" }
func (i Meter) String() string        { return fmt.Sprintf("meter:%d", i.Meter) }

func (i WriteMetadata) String() string {
	if i.Mask == ^uint64(0) {
		return "write_metadata:" + hexadecimal(i.Metadata)
	}
	return "write_metadata:" + hexadecimal(i.Metadata) + "/" + hexadecimal(i.Mask)
}

func (i ExperimenterInstruction) String() string {
	return fmt.Sprintf("experimenter(%#x,%s)", i.Experimenter, hex.EncodeToString(i.Data))
}

func (i UnknownInstruction) String() string {
	return fmt.Sprintf("instruction(%d,%s)", uint16(i.Kind), hex.EncodeToString(i.Body))
}
