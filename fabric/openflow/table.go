package openflow

import "encoding/binary"

// TableMod configures a table (struct ofp_table_mod, section 7.3.3). OpenFlow 1.3 defines no configuration.
type TableMod struct {
	Table  TableID
	Config uint32
}

// Type is TypeTableMod.
func (m *TableMod) Type() Type { return TypeTableMod }

func (m *TableMod) layout(c *codec) {
	u8(c, &m.Table, "ofp_table_mod.table_id")
	c.pad(3)
	u32(c, &m.Config, "ofp_table_mod.config")
}

// TableFeatures describes what a table can do (struct ofp_table_features, section 7.3.5.5).
type TableFeatures struct {
	Table         TableID
	Name          string // up to 31 bytes
	MetadataMatch uint64 // bits that the table can match
	MetadataWrite uint64 // bits that the table can write
	Config        uint32
	MaxEntries    uint32
	Properties    []TableProperty
}

// TablePropertyType is the type of a property (enum ofp_table_feature_prop_type). The types that end in Miss are for
// the table-miss flow; they are left out if they are the same as those of other flows.
type TablePropertyType uint16

// The types of properties.
const (
	TableInstructions      TablePropertyType = 0
	TableInstructionsMiss  TablePropertyType = 1
	TableNextTables        TablePropertyType = 2
	TableNextTablesMiss    TablePropertyType = 3
	TableWriteActions      TablePropertyType = 4
	TableWriteActionsMiss  TablePropertyType = 5
	TableApplyActions      TablePropertyType = 6
	TableApplyActionsMiss  TablePropertyType = 7
	TableMatch             TablePropertyType = 8
	TableWildcards         TablePropertyType = 10
	TableWriteSetField     TablePropertyType = 12
	TableWriteSetFieldMiss TablePropertyType = 13
	TableApplySetField     TablePropertyType = 14
	TableApplySetFieldMiss TablePropertyType = 15
	TableExperimenter      TablePropertyType = 0xfffe
	TableExperimenterMiss  TablePropertyType = 0xffff
)

// TableProperty is a property of a table (struct ofp_table_feature_prop_header). Which list it has depends on its
// type.
type TableProperty struct {
	Kind         TablePropertyType
	Instructions []InstructionID // TableInstructions
	Tables       []TableID       // TableNextTables
	Actions      []ActionID      // TableWriteActions, TableApplyActions
	Fields       []FieldType     // TableMatch, TableWildcards, TableWriteSetField, TableApplySetField
	Body         []byte          // TableExperimenter and types that OpenFlow 1.3 does not define: what follows the length
}

// InstructionID is an instruction that a table supports: the header of an instruction.
type InstructionID struct {
	Type InstructionType
	Body []byte // InstructionExperimenter: the experimenter id, and data
}

// ActionID is an action that a table supports: the header of an action.
type ActionID struct {
	Type ActionType
	Body []byte // ActionExperimenter: the experimenter id, and data
}

// FieldType is a field that a table supports: the header of a field.
type FieldType struct {
	ID           FieldID
	Masked       bool   // with a mask
	Length       uint8  // bytes of the value and mask
	Experimenter uint32 // of ClassExperimenter
}

// TypeOf is the FieldType of a field of OpenFlow 1.3, or of FieldTCPFlags.
func (id FieldID) TypeOf(masked bool) FieldType {
	t := FieldType{ID: id, Masked: masked}
	if f := id.info(); f != nil {
		t.Length = uint8(f.bytes())
		if masked {
			t.Length *= 2
		}
	}
	if of := id.experimenter(); of != "" {
		t.Length += uint8(len(of))
		t.Experimenter = binary.BigEndian.Uint32([]byte(of))
	}
	return t
}

func (c *codec) tableFeatures(p *TableFeatures) {
	s := c.length(c.at(), "ofp_table_features.length")
	u8(c, &p.Table, "ofp_table_features.table_id")
	c.pad(5)
	c.text(&p.Name, 32, "ofp_table_features.name")
	u64(c, &p.MetadataMatch, "ofp_table_features.metadata_match")
	u64(c, &p.MetadataWrite, "ofp_table_features.metadata_write")
	u32(c, &p.Config, "ofp_table_features.config")
	u32(c, &p.MaxEntries, "ofp_table_features.max_entries")
	list(c, &p.Properties, (*codec).tableProperty)
	c.close(s)
}

func (c *codec) tableProperty(p *TableProperty) {
	start := c.at()
	u16(c, &p.Kind, "ofp_table_feature_prop_header.type")
	s := c.length(start, "ofp_table_feature_prop_header.length")
	lists := [...]int{len(p.Instructions), len(p.Tables), len(p.Actions), len(p.Fields), len(p.Body)}
	mine := 4
	switch p.Kind {
	case TableInstructions, TableInstructionsMiss:
		mine = 0
		list(c, &p.Instructions, (*codec).instructionID)
	case TableNextTables, TableNextTablesMiss:
		mine = 1
		list(c, &p.Tables, func(c *codec, t *TableID) { u8(c, t, "ofp_table_feature_prop_next_tables.next_table_ids") })
	case TableWriteActions, TableWriteActionsMiss, TableApplyActions, TableApplyActionsMiss:
		mine = 2
		list(c, &p.Actions, (*codec).actionID)
	case TableMatch, TableWildcards, TableWriteSetField, TableWriteSetFieldMiss, TableApplySetField, TableApplySetFieldMiss:
		mine = 3
		list(c, &p.Fields, (*codec).fieldType)
	default:
		c.unknown++
		c.rest(&p.Body, "ofp_table_feature_prop_header")
	}
	for i, n := range lists {
		if n > 0 && i != mine {
			c.fail("ofp_table_feature_prop_header.type", start, "a property of type %d does not have these lists", p.Kind)
		}
	}
	c.close(s)
	c.align(start)
}

func (c *codec) instructionID(p *InstructionID) {
	start := c.at()
	u16(c, &p.Type, "ofp_instruction_id.type")
	s := c.length(start, "ofp_instruction_id.len")
	c.rest(&p.Body, "ofp_instruction_id")
	c.close(s)
}

func (c *codec) actionID(p *ActionID) {
	start := c.at()
	u16(c, &p.Type, "ofp_action_id.type")
	s := c.length(start, "ofp_action_id.len")
	c.rest(&p.Body, "ofp_action_id")
	c.close(s)
}

func (c *codec) fieldType(p *FieldType) {
	const name = "ofp_table_feature_prop_oxm.oxm_ids"
	start := c.at()
	if c.encoding && p.ID>>23 != 0 {
		c.fail(name, start, "field id %#x has more than 23 bits", uint32(p.ID))
	}
	h := uint32(p.ID)<<9 | uint32(p.Length)
	if p.Masked {
		h |= 1 << 8
	}
	u32(c, &h, name)
	if !c.encoding {
		p.ID, p.Masked, p.Length = FieldID(h>>9), h>>8&1 == 1, uint8(h)
	}
	if p.ID.Class() == ClassExperimenter {
		u32(c, &p.Experimenter, name)
	} else if p.Experimenter != 0 {
		c.fail(name, start, "%s is of no experimenter", p.ID)
	}
}
