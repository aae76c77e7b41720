package oftest

import (
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// matcher is a match as a mask and a value.
type matcher struct{ mask, value key }

// matches reports whether a packet matches.
func (m *matcher) matches(k *key) bool { return k.equalUnder(&m.value, &m.mask) }

// includes reports whether all packets of another match are packets of this one (section 6.4, non-strict commands).
func (m *matcher) includes(o *matcher) bool {
	return o.mask.covers(&m.mask) && o.value.equalUnder(&m.value, &m.mask)
}

// overlaps reports whether a packet can match both.
func (m *matcher) overlaps(o *matcher) bool {
	both := m.mask.and(&o.mask)
	return m.value.equalUnder(&o.value, &both)
}

// need is a field that must come before another one, with one of some values; any if there are none.
type need struct {
	id     openflow.FieldID
	values []uint64
}

var (
	needIP     = []need{{openflow.FieldEthType, []uint64{typeIPv4, typeIPv6}}}
	needIPv4   = []need{{openflow.FieldEthType, []uint64{typeIPv4}}}
	needIPv6   = []need{{openflow.FieldEthType, []uint64{typeIPv6}}}
	needARP    = []need{{openflow.FieldEthType, []uint64{typeARP}}}
	needMPLS   = []need{{openflow.FieldEthType, []uint64{typeMPLS, typeMPLSM}}}
	needTCP    = []need{needIP[0], {openflow.FieldIPProto, []uint64{protoTCP}}}
	needUDP    = []need{needIP[0], {openflow.FieldIPProto, []uint64{protoUDP}}}
	needSCTP   = []need{needIP[0], {openflow.FieldIPProto, []uint64{protoSCTP}}}
	needICMP   = []need{needIPv4[0], {openflow.FieldIPProto, []uint64{protoICMP}}}
	needICMPv6 = []need{needIPv6[0], {openflow.FieldIPProto, []uint64{protoICMPv6}}}
	needND     = append(needICMPv6[:2:2], need{openflow.FieldICMPv6Type, []uint64{typeSolicitation, typeAdvertisement}})
	needNS     = append(needICMPv6[:2:2], need{openflow.FieldICMPv6Type, []uint64{typeSolicitation}})
	needNA     = append(needICMPv6[:2:2], need{openflow.FieldICMPv6Type, []uint64{typeAdvertisement}})
)

// rule is what a switch accepts of a field: Open vSwitch also accepts masks of fields for which the specification has none.
type rule struct {
	max      uint64 // the largest value; 0 if any
	maskable bool
	settable bool // in a set-field action
	needs    []need
}

// rules has the fields that Open vSwitch 3.1 supports (ovs-fields(7)).
var rules = map[openflow.FieldID]rule{
	openflow.FieldInPort:       {},
	openflow.FieldMetadata:     {maskable: true, settable: true},
	openflow.FieldEthDst:       {maskable: true, settable: true},
	openflow.FieldEthSrc:       {maskable: true, settable: true},
	openflow.FieldEthType:      {},
	openflow.FieldVLANVID:      {max: 0x1fff, maskable: true, settable: true},
	openflow.FieldVLANPCP:      {max: 7, settable: true, needs: []need{{openflow.FieldVLANVID, nil}}},
	openflow.FieldIPDSCP:       {max: 63, settable: true, needs: needIP},
	openflow.FieldIPECN:        {max: 3, settable: true, needs: needIP},
	openflow.FieldIPProto:      {needs: needIP},
	openflow.FieldIPv4Src:      {maskable: true, settable: true, needs: needIPv4},
	openflow.FieldIPv4Dst:      {maskable: true, settable: true, needs: needIPv4},
	openflow.FieldTCPSrc:       {maskable: true, settable: true, needs: needTCP},
	openflow.FieldTCPDst:       {maskable: true, settable: true, needs: needTCP},
	openflow.FieldUDPSrc:       {maskable: true, settable: true, needs: needUDP},
	openflow.FieldUDPDst:       {maskable: true, settable: true, needs: needUDP},
	openflow.FieldSCTPSrc:      {maskable: true, settable: true, needs: needSCTP},
	openflow.FieldSCTPDst:      {maskable: true, settable: true, needs: needSCTP},
	openflow.FieldICMPv4Type:   {settable: true, needs: needICMP},
	openflow.FieldICMPv4Code:   {settable: true, needs: needICMP},
	openflow.FieldARPOp:        {max: 255, settable: true, needs: needARP},
	openflow.FieldARPSPA:       {maskable: true, settable: true, needs: needARP},
	openflow.FieldARPTPA:       {maskable: true, settable: true, needs: needARP},
	openflow.FieldARPSHA:       {maskable: true, settable: true, needs: needARP},
	openflow.FieldARPTHA:       {maskable: true, settable: true, needs: needARP},
	openflow.FieldIPv6Src:      {maskable: true, settable: true, needs: needIPv6},
	openflow.FieldIPv6Dst:      {maskable: true, settable: true, needs: needIPv6},
	openflow.FieldIPv6FLabel:   {max: 0xfffff, maskable: true, settable: true, needs: needIPv6},
	openflow.FieldICMPv6Type:   {settable: true, needs: needICMPv6},
	openflow.FieldICMPv6Code:   {settable: true, needs: needICMPv6},
	openflow.FieldIPv6NDTarget: {maskable: true, settable: true, needs: needND},
	openflow.FieldIPv6NDSLL:    {maskable: true, settable: true, needs: needNS},
	openflow.FieldIPv6NDTLL:    {maskable: true, settable: true, needs: needNA},
	openflow.FieldMPLSLabel:    {max: 0xfffff, needs: needMPLS},
	openflow.FieldMPLSTC:       {max: 7, needs: needMPLS},
	openflow.FieldMPLSBoS:      {max: 1, needs: needMPLS},
	openflow.FieldTunnelID:     {maskable: true, settable: true},
}

// refuse is an error of a type and code. Its data is added where it is sent.
func refuse(t openflow.ErrorType, code uint16) *openflow.Error {
	return &openflow.Error{Kind: t, Code: code}
}

// newMatcher checks a match in the order of its fields, as Open vSwitch does: a prerequisite must come before the field
// that needs it.
func newMatcher(match openflow.Match) (*matcher, *openflow.Error) {
	m := &matcher{}
	seen := map[openflow.FieldID]bool{}
	for _, f := range match {
		r, ok := rules[f.ID()]
		switch {
		case !ok:
			return nil, refuse(openflow.ErrBadMatch, openflow.MatchBadField)
		case f.Masked() && !r.maskable:
			return nil, refuse(openflow.ErrBadMatch, openflow.MatchBadMask)
		case r.max > 0 && f.Uint() > r.max:
			return nil, refuse(openflow.ErrBadMatch, openflow.MatchBadValue)
		case !m.has(r.needs):
			return nil, refuse(openflow.ErrBadMatch, openflow.MatchBadPrereq)
		case seen[f.ID()]:
			return nil, refuse(openflow.ErrBadMatch, openflow.MatchDupField)
		}
		seen[f.ID()] = true
		if !m.add(f) {
			return nil, refuse(openflow.ErrBadMatch, openflow.MatchBadWildcards)
		}
	}
	return m, nil
}

// add adds a field, and reports whether its value is within its mask.
func (m *matcher) add(f openflow.Field) bool {
	id := f.ID()
	value, mask := m.value.bytes(id), m.mask.bytes(id)
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
	if v := m.value.uint(id); id == openflow.FieldVLANVID && m.mask.uint(id)&0x1fff == 0x1fff && v&vlanPresent == 0 {
		m.value.setUint(id, 0) // Open vSwitch takes an id without the bit for no tag
	}
	return true
}

// has reports whether the match requires all of some fields.
func (m *matcher) has(needs []need) bool {
	for _, n := range needs {
		v, mask := m.value.uint(n.id), m.mask.uint(n.id)
		switch {
		case n.id == openflow.FieldVLANVID:
			if v&vlanPresent == 0 {
				return false
			}
		case mask == 0 || !slices.Contains(n.values, v):
			return false
		}
	}
	return true
}

// kept is the match as a switch returns it.
func (m *matcher) kept(match openflow.Match) openflow.Match {
	all := match.Canonical()
	for i, f := range all {
		if f.ID() == openflow.FieldVLANVID && f.Uint() != m.value.uint(f.ID()) {
			all[i] = openflow.NoVLAN()
		}
	}
	return all
}
