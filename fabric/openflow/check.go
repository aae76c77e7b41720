package openflow

import (
	"fmt"
	"slices"
	"strings"
)

// Check reports the first mistake for which a switch refuses a match: a field that is there twice, a value or mask
// that does not fit, a mask that the field cannot have, value bits outside of the mask, and a field without those
// that it needs (section 7.2.3.6, "Flow Match Field Prerequisite"). The error says what to write. Fields that
// OpenFlow 1.3 does not define are not checked. Append does not call Check.
func (m Match) Check() error {
	for i, f := range m {
		if _, twice := m[:i].Get(f.ID()); twice {
			return fmt.Errorf("match: %s is there twice: remove one", f.ID())
		}
		if err := f.check(); err != nil {
			return fmt.Errorf("match: %w", err)
		}
	}
	for _, f := range m {
		if err := m.needs(f); err != nil {
			return fmt.Errorf("match: %w", err)
		}
	}
	return nil
}

// check reports a value or mask that the field cannot have.
func (f Field) check() error {
	info := f.ID().info()
	if info == nil {
		return nil
	}
	switch {
	case len(f.value()) != info.bytes():
		return fmt.Errorf("%s has a value of %d bytes, want %d", f.ID(), len(f.value()), info.bytes())
	case f.Masked() && !info.maskable:
		return fmt.Errorf("%s cannot have a mask: remove it", f.ID())
	case info.bits < 64 && f.Uint()>>info.bits != 0:
		return fmt.Errorf("%s %#x has more than %d bits", f.ID(), f.Uint(), info.bits)
	}
	for i := range f.mask() {
		if f.value()[i]&^f.mask()[i] != 0 {
			return fmt.Errorf("%s has bits of the value that its mask leaves out: clear them", f.String())
		}
	}
	if f.ID() == FieldVLANVID && f.Uint() != 0 && f.Uint()&vlanPresent == 0 {
		return fmt.Errorf("vlan_vid %#x lacks the bit %#x that a tag is present: add it", f.Uint(), vlanPresent)
	}
	return nil
}

// needs reports a field without those that it needs.
func (m Match) needs(f Field) error {
	info := f.ID().info()
	if info == nil {
		return nil
	}
	for _, n := range info.needs {
		if !m.has(n) {
			return fmt.Errorf("%s needs %s: add it", f.ID(), n)
		}
	}
	return nil
}

func (m Match) has(n need) bool {
	f, ok := m.Get(n.field)
	switch {
	case !ok:
		return false
	case n.field == FieldVLANVID:
		return f.Uint()&vlanPresent != 0
	}
	return n.values == nil || slices.Contains(n.values, f.Uint())
}

// String is such as "eth_type 0x0800 or 0x86dd".
func (n need) String() string {
	var values []string
	for _, v := range n.values {
		if n.field == FieldEthType {
			values = append(values, fmt.Sprintf("0x%04x", v))
		} else {
			values = append(values, fmt.Sprint(v))
		}
	}
	switch {
	case n.field == FieldVLANVID:
		return "vlan_vid of a tag (VLAN or AnyVLAN)"
	case values == nil:
		return n.field.String()
	}
	return n.field.String() + " " + strings.Join(values, " or ")
}
