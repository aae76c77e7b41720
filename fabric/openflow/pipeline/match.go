package pipeline

import (
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// Matcher is a match as a mask and a value.
type Matcher struct{ Mask, Value Key }

// unread are fields of OpenFlow 1.3 that packets have, but are not read.
var unread = []openflow.FieldID{openflow.FieldInPhyPort, openflow.FieldPBBISID, openflow.FieldIPv6ExtHdr}

// newMatcher returns the matcher of a match that a switch has accepted. Fields that are not read of packets, such as those of
// experimenters, are not part of it, and are returned.
func newMatcher(match openflow.Match) (m Matcher, unknown openflow.Match) {
	for _, f := range match {
		if !defined(f.ID()) || slices.Contains(unread, f.ID()) {
			unknown = append(unknown, f)
			continue
		}
		m.Add(f)
	}
	return m, unknown
}

// defined reports whether a key has a place for a field.
func defined(id openflow.FieldID) bool {
	_, ok := numberOf(id)
	return ok
}

// Add adds a field, and reports whether its value is within its mask.
func (m *Matcher) Add(f openflow.Field) bool {
	id := f.ID()
	value, mask := m.Value.Bytes(id), m.Mask.Bytes(id)
	copy(value, f.Value())
	if !f.Masked() {
		for i := range mask {
			mask[i] = 0xff
		}
		if id == openflow.FieldVLANVID {
			mask[0] = 0x1f
		}
	} else {
		copy(mask, f.Mask())
	}
	for i := range value {
		if value[i]&^mask[i] != 0 {
			return false
		}
	}
	if v := m.Value.Uint(id); id == openflow.FieldVLANVID && m.Mask.Uint(id)&0x1fff == 0x1fff && v&VLANPresent == 0 {
		m.Value.setUint(id, 0) // Open vSwitch takes an id without the bit for no tag
	}
	return true
}

// Matches reports whether a packet matches.
func (m *Matcher) Matches(k *Key) bool { return k.equalUnder(&m.Value, &m.Mask) }

// Includes reports whether all packets of another match are packets of this one (section 6.4, non-strict commands).
func (m *Matcher) Includes(o *Matcher) bool {
	return o.Mask.covers(&m.Mask) && o.Value.equalUnder(&m.Value, &m.Mask)
}

// Overlaps reports whether a packet can match both.
func (m *Matcher) Overlaps(o *Matcher) bool {
	both := m.Mask.and(&o.Mask)
	return m.Value.equalUnder(&o.Value, &both)
}
