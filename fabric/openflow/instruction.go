package openflow

import "fmt"

// Instruction is what a table does with a packet that matches a flow (struct ofp_instruction_header, section
// 7.2.4). Instructions are values, not pointers. String is the instruction as ovs-ofctl prints it.
type Instruction interface {
	Type() InstructionType
	String() string
	// fields passes over what follows the header, and returns the instruction with what was read.
	fields(c *codec) Instruction
}

// InstructionType is the type of an instruction (enum ofp_instruction_type).
type InstructionType uint16

// The types of instructions.
const (
	InstructionGotoTable     InstructionType = 1
	InstructionWriteMetadata InstructionType = 2
	InstructionWriteActions  InstructionType = 3
	InstructionApplyActions  InstructionType = 4
	InstructionClearActions  InstructionType = 5
	InstructionMeter         InstructionType = 6
	InstructionExperimenter  InstructionType = 0xffff
)

// String is the name by which ovs-ofctl prints the instruction, such as "goto_table".
func (t InstructionType) String() string {
	switch t {
	case InstructionGotoTable:
		return "goto_table"
	case InstructionWriteMetadata:
		return "write_metadata"
	case InstructionWriteActions:
		return "write_actions"
	case InstructionApplyActions:
		return "apply_actions"
	case InstructionClearActions:
		return "clear_actions"
	case InstructionMeter:
		return "meter"
	case InstructionExperimenter:
		return "experimenter"
	}
	return fmt.Sprintf("instruction(%d)", uint16(t))
}

// empty is the instruction of a type that is read.
func (t InstructionType) empty() Instruction {
	switch t {
	case InstructionGotoTable:
		return GotoTable{}
	case InstructionWriteMetadata:
		return WriteMetadata{}
	case InstructionWriteActions:
		return WriteActions{}
	case InstructionApplyActions:
		return ApplyActions{}
	case InstructionClearActions:
		return ClearActions{}
	case InstructionMeter:
		return Meter{}
	case InstructionExperimenter:
		return ExperimenterInstruction{}
	}
	return UnknownInstruction{Kind: t}
}

// GotoTable continues with a later table.
type GotoTable struct{ Table TableID }

// WriteMetadata sets the bits of mask in the metadata, which later tables can match.
type WriteMetadata struct{ Metadata, Mask uint64 }

// WriteActions adds actions to the set that is executed after the last table.
type WriteActions struct{ Actions Actions }

// ApplyActions executes actions at once, in their order.
type ApplyActions struct{ Actions Actions }

// ClearActions removes all actions from the set that is executed after the last table.
type ClearActions struct{}

// Meter passes the packet through a meter, which may drop it.
type Meter struct{ Meter MeterID }

// ExperimenterInstruction is an instruction of an extension, kept as bytes.
type ExperimenterInstruction struct {
	Experimenter uint32
	Data         []byte // 8n bytes
}

// UnknownInstruction is an instruction of a type that OpenFlow 1.3 does not define. It is encoded to the bytes that
// were decoded.
type UnknownInstruction struct {
	Kind InstructionType
	Body []byte // what follows the length: 8n+4 bytes
}

// Type is InstructionGotoTable.
func (GotoTable) Type() InstructionType { return InstructionGotoTable }

// Type is InstructionWriteMetadata.
func (WriteMetadata) Type() InstructionType { return InstructionWriteMetadata }

// Type is InstructionWriteActions.
func (WriteActions) Type() InstructionType { return InstructionWriteActions }

// Type is InstructionApplyActions.
func (ApplyActions) Type() InstructionType { return InstructionApplyActions }

// Type is InstructionClearActions.
func (ClearActions) Type() InstructionType { return InstructionClearActions }

// Type is InstructionMeter.
func (Meter) Type() InstructionType { return InstructionMeter }

// Type is InstructionExperimenter.
func (ExperimenterInstruction) Type() InstructionType { return InstructionExperimenter }

// Type is the type in the header.
func (i UnknownInstruction) Type() InstructionType { return i.Kind }

// Instructions is what a flow does with a packet. Each type occurs once.
type Instructions []Instruction

func (c *codec) instructions(p *Instructions) {
	list(c, (*[]Instruction)(p), (*codec).instruction)
}

// instruction is an instruction with its header.
func (c *codec) instruction(p *Instruction) {
	start := c.at()
	var t InstructionType
	if c.encoding {
		if *p == nil {
			c.fail("ofp_instruction_header.type", start, "an instruction is nil")
			return
		}
		t = (*p).Type()
	}
	u16(c, &t, "ofp_instruction_header.type")
	s := c.length(start, "ofp_instruction_header.len")
	if c.err != nil {
		return
	}
	i := *p
	if !c.encoding {
		i = t.empty()
	}
	i = i.fields(c)
	c.multipleOf8(s)
	c.close(s)
	if !c.encoding {
		*p = i
	}
}

func (i GotoTable) fields(c *codec) Instruction {
	u8(c, &i.Table, "ofp_instruction_goto_table.table_id")
	c.pad(3)
	return i
}

func (i WriteMetadata) fields(c *codec) Instruction {
	c.pad(4)
	u64(c, &i.Metadata, "ofp_instruction_write_metadata.metadata")
	u64(c, &i.Mask, "ofp_instruction_write_metadata.metadata_mask")
	return i
}

func (i WriteActions) fields(c *codec) Instruction {
	c.pad(4)
	c.actions(&i.Actions)
	return i
}

func (i ApplyActions) fields(c *codec) Instruction {
	c.pad(4)
	c.actions(&i.Actions)
	return i
}

func (i ClearActions) fields(c *codec) Instruction { c.pad(4); return i }

func (i Meter) fields(c *codec) Instruction {
	u32(c, &i.Meter, "ofp_instruction_meter.meter_id")
	return i
}

func (i ExperimenterInstruction) fields(c *codec) Instruction {
	c.unknown++
	u32(c, &i.Experimenter, "ofp_instruction_experimenter.experimenter")
	c.rest(&i.Data, "ofp_instruction_experimenter")
	return i
}

func (i UnknownInstruction) fields(c *codec) Instruction {
	c.unknown++
	if _, unknown := i.Kind.empty().(UnknownInstruction); c.encoding && !unknown {
		c.fail("ofp_instruction_header.type", c.at(), "an instruction of type %d is no UnknownInstruction: use that of %s", i.Kind, i.Kind)
	}
	c.rest(&i.Body, "ofp_instruction_header")
	return i
}
