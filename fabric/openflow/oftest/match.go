package oftest

import (
	"slices"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// need is a field that must come before another one, with one of some values; any if there are none.
type need struct {
	id     openflow.FieldID
	values []uint64
}

var (
	needIP     = []need{{openflow.FieldEthType, []uint64{pipeline.EtherIPv4, pipeline.EtherIPv6}}}
	needIPv4   = []need{{openflow.FieldEthType, []uint64{pipeline.EtherIPv4}}}
	needIPv6   = []need{{openflow.FieldEthType, []uint64{pipeline.EtherIPv6}}}
	needARP    = []need{{openflow.FieldEthType, []uint64{pipeline.EtherARP}}}
	needMPLS   = []need{{openflow.FieldEthType, []uint64{pipeline.EtherMPLS, pipeline.EtherMPLSMulticast}}}
	needTCP    = []need{needIP[0], {openflow.FieldIPProto, []uint64{pipeline.ProtocolTCP}}}
	needUDP    = []need{needIP[0], {openflow.FieldIPProto, []uint64{pipeline.ProtocolUDP}}}
	needSCTP   = []need{needIP[0], {openflow.FieldIPProto, []uint64{pipeline.ProtocolSCTP}}}
	needICMP   = []need{needIPv4[0], {openflow.FieldIPProto, []uint64{pipeline.ProtocolICMP}}}
	needICMPv6 = []need{needIPv6[0], {openflow.FieldIPProto, []uint64{pipeline.ProtocolICMPv6}}}
	needND     = append(needICMPv6[:2:2], need{openflow.FieldICMPv6Type, []uint64{pipeline.NeighbourSolicitation, pipeline.NeighbourAdvertisement}})
	needNS     = append(needICMPv6[:2:2], need{openflow.FieldICMPv6Type, []uint64{pipeline.NeighbourSolicitation}})
	needNA     = append(needICMPv6[:2:2], need{openflow.FieldICMPv6Type, []uint64{pipeline.NeighbourAdvertisement}})
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
	openflow.FieldTCPFlags:     {max: 0xfff, maskable: true, needs: needTCP},
}

// refuse is an error of a type and code. Its data is added where it is sent.
func refuse(t openflow.ErrorType, code uint16) *openflow.Error {
	return &openflow.Error{Kind: t, Code: code}
}

// newMatcher checks a match in the order of its fields, as Open vSwitch does: a prerequisite must come before the field
// that needs it.
func newMatcher(match openflow.Match) (*pipeline.Matcher, *openflow.Error) {
	m := &pipeline.Matcher{}
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
		case !has(m, r.needs):
			return nil, refuse(openflow.ErrBadMatch, openflow.MatchBadPrereq)
		case seen[f.ID()]:
			return nil, refuse(openflow.ErrBadMatch, openflow.MatchDupField)
		}
		seen[f.ID()] = true
		if !m.Add(f) {
			return nil, refuse(openflow.ErrBadMatch, openflow.MatchBadWildcards)
		}
	}
	return m, nil
}

// has reports whether the match requires all of some fields.
func has(m *pipeline.Matcher, needs []need) bool {
	for _, n := range needs {
		v, mask := m.Value.Uint(n.id), m.Mask.Uint(n.id)
		switch {
		case n.id == openflow.FieldVLANVID:
			if v&pipeline.VLANPresent == 0 {
				return false
			}
		case mask == 0 || !slices.Contains(n.values, v):
			return false
		}
	}
	return true
}

// kept is the match as a switch returns it.
func kept(m *pipeline.Matcher, match openflow.Match) openflow.Match {
	all := match.Canonical()
	for i, f := range all {
		if f.ID() == openflow.FieldVLANVID && f.Uint() != m.Value.Uint(f.ID()) {
			all[i] = openflow.NoVLAN()
		}
	}
	return all
}
