package program

import (
	"bytes"
	"cmp"
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// place identifies a flow in a switch: no two flows have the same (OpenFlow 1.3.5, section 5.2).
type place struct {
	table    openflow.TableID
	priority uint16
	match    string
}

func placeOf(t openflow.TableID, priority uint16, m openflow.Match) place {
	return place{t, priority, string(wire(&openflow.FlowMod{Match: m.Canonical()}))}
}

// wire returns the bytes of a message, with which two of them are compared; nil for one that cannot be sent.
func wire(m openflow.Message) []byte {
	b, _ := openflow.Append(nil, 0, m)
	return b
}

func sameFlow(want Flow, have openflow.FlowStats) bool {
	return want.Cookie == withoutFingerprint(have.Cookie) && want.IdleTimeout == have.IdleTimeout && want.HardTimeout == have.HardTimeout && want.Flags == have.Flags &&
		bytes.Equal(wire(&openflow.FlowMod{Instructions: ordered(want.Instructions)}), wire(&openflow.FlowMod{Instructions: ordered(have.Instructions)}))
}

// execution is the order in which a switch executes instructions (section 5.9). It may report them in another.
var execution = []openflow.InstructionType{
	openflow.InstructionMeter, openflow.InstructionApplyActions, openflow.InstructionClearActions, openflow.InstructionWriteActions,
	openflow.InstructionWriteMetadata, openflow.InstructionGotoTable,
}

// ordered returns instructions in the order of their execution, without those that do nothing.
func ordered(all openflow.Instructions) (out openflow.Instructions) {
	for _, i := range all {
		switch i := i.(type) {
		case openflow.ApplyActions:
			if len(i.Actions) == 0 {
				continue
			}
		case openflow.WriteActions:
			if len(i.Actions) == 0 {
				continue
			}
		}
		out = append(out, i)
	}
	rank := func(i openflow.Instruction) int {
		if n := slices.Index(execution, i.Type()); n >= 0 {
			return n
		}
		return len(execution)
	}
	slices.SortStableFunc(out, func(a, b openflow.Instruction) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

func sameGroup(want Group, have openflow.GroupDesc) bool {
	return bytes.Equal(
		wire(&openflow.GroupMod{Kind: want.Kind, Group: want.ID, Buckets: bucketsOf(want.Kind, want.Buckets)}),
		wire(&openflow.GroupMod{Kind: have.Kind, Group: have.Group, Buckets: bucketsOf(have.Kind, have.Buckets)}),
	)
}

// bucketsOf returns buckets without what their type of group does not use, and a switch need not report as it was set.
func bucketsOf(kind openflow.GroupType, all []openflow.Bucket) []openflow.Bucket {
	out := slices.Clone(all)
	for n := range out {
		if kind != openflow.GroupTypeSelect {
			out[n].Weight = 0
		}
		if kind != openflow.GroupTypeFF {
			out[n].WatchPort, out[n].WatchGroup = openflow.PortAny, openflow.GroupAny
		}
	}
	return out
}

func sameMeter(want Meter, have openflow.MeterConfig) bool {
	return bytes.Equal(
		wire(&openflow.MeterMod{Flags: want.Flags, Meter: want.ID, Bands: want.Bands}),
		wire(&openflow.MeterMod{Flags: have.Flags, Meter: have.Meter, Bands: have.Bands}),
	)
}
