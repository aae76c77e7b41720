package program

import (
	"math"
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// needs are the fields that the rules of each table match.
var needs = [...][]openflow.FieldID{
	TablePort:        {openflow.FieldInPort, openflow.FieldEthDst, openflow.FieldEthType, openflow.FieldVLANVID},
	TableSource:      {openflow.FieldInPort, openflow.FieldEthSrc, openflow.FieldEthType, openflow.FieldVLANVID, openflow.FieldIPProto, openflow.FieldICMPv6Type},
	TableMeter:       {},
	TableRedirect:    {openflow.FieldInPort, openflow.FieldEthType, openflow.FieldIPProto, openflow.FieldUDPSrc},
	TableDestination: {openflow.FieldInPort, openflow.FieldEthDst, openflow.FieldVLANVID},
	TableLabel:       {openflow.FieldInPort, openflow.FieldVLANVID, openflow.FieldVLANPCP},
	TableDeliver:     {openflow.FieldEthDst, openflow.FieldVLANVID},
}

// senders are the fields that the rules of TableSource match where the switch can (KindNeighbour).
var senders = []openflow.FieldID{
	openflow.FieldEthDst, openflow.FieldARPSPA, openflow.FieldARPSHA,
	openflow.FieldIPv6Src, openflow.FieldIPv6NDTarget, openflow.FieldIPv6NDSLL, openflow.FieldIPv6NDTLL,
}

// Senders reports whether a switch with the tables of the whole pipeline can match the senders of ARP and neighbour discovery. A
// table that it does not describe can (Usable).
func Senders(described []openflow.TableFeatures) bool {
	for _, f := range described {
		if f.Table == TableSource && !matches(f, senders) {
			return false
		}
	}
	return true
}

// TCPFlags reports whether a switch with the tables of the whole pipeline can match the first segments of TCP connections (Watch). A table that it does not
// describe can.
func TCPFlags(described []openflow.TableFeatures) bool {
	for _, f := range described {
		if f.Table == TableRedirect && !matches(f, []openflow.FieldID{openflow.FieldTCPFlags}) {
			return false
		}
	}
	return true
}

// matches reports whether a table can match fields.
func matches(f openflow.TableFeatures, fields []openflow.FieldID) bool {
	for _, p := range f.Properties {
		if p.Kind != openflow.TableMatch {
			continue
		}
		for _, id := range fields {
			if !slices.ContainsFunc(p.Fields, func(f openflow.FieldType) bool { return f.ID == id }) {
				return false
			}
		}
	}
	return true
}

// Usable returns how many of the first tables of a switch with n tables do what the pipeline needs of them, and for how many
// flows the smallest of those that are used has space, 0 if that is not known (OpenFlow 1.3.5, section 7.3.5.5). A table, or a
// property of one, that the switch does not describe is taken to do everything. With less than the whole pipeline, table 0 is used.
func Usable(described []openflow.TableFeatures, n int) (tables, entries int) {
	by := map[openflow.TableID]openflow.TableFeatures{}
	for _, f := range described {
		by[f.Table] = f
	}
	if n < len(Pipeline) {
		return n, int(by[TablePort].MaxEntries)
	}
	for tables < n && (tables >= len(needs) || serves(by[openflow.TableID(tables)], openflow.TableID(tables))) {
		tables++
	}
	if tables = max(tables, 1); tables < len(Pipeline) {
		return tables, int(by[TablePort].MaxEntries)
	}
	least := uint32(math.MaxUint32)
	for t := range openflow.TableID(len(Pipeline)) {
		if f, ok := by[t]; ok && f.MaxEntries > 0 && t != TableMeter && t != TableRedirect {
			least = min(least, f.MaxEntries)
		}
	}
	if least == math.MaxUint32 {
		least = 0
	}
	return tables, int(least)
}

// serves reports whether a table does what the pipeline needs of it.
func serves(f openflow.TableFeatures, t openflow.TableID) bool {
	if !matches(f, needs[t]) {
		return false
	}
	for _, p := range f.Properties {
		switch p.Kind {
		case openflow.TableInstructions:
			has := func(t openflow.InstructionType) bool {
				return slices.ContainsFunc(p.Instructions, func(i openflow.InstructionID) bool { return i.Type == t })
			}
			if !has(openflow.InstructionApplyActions) || t != TableDeliver && !has(openflow.InstructionGotoTable) {
				return false
			}
		case openflow.TableNextTables:
			if t != TableDeliver && !slices.Contains(p.Tables, t+1) {
				return false
			}
		}
	}
	return true
}
