package oftest

import (
	"slices"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// The error of the ONF extension for two instructions of one type (EXT-260), which Open vSwitch sends for OpenFlow 1.3.
const duplicateInstruction = 2600

// check checks instructions for a flow of a table and a match.
func (s *Switch) check(all openflow.Instructions, t openflow.TableID, m *pipeline.Matcher) *openflow.Error {
	seen := map[openflow.InstructionType]bool{}
	invalid := func(code uint16) *openflow.Error { return refuse(openflow.ErrBadInstruction, code) }
	for _, i := range all {
		if seen[i.Type()] {
			return &openflow.Error{Kind: openflow.ErrExperimenter, Experimenter: openflow.ONF, Code: duplicateInstruction}
		}
		seen[i.Type()] = true
		switch i := i.(type) {
		case openflow.Meter, openflow.ApplyActions, openflow.ClearActions, openflow.WriteActions, openflow.WriteMetadata:
		case openflow.GotoTable:
			if i.Table <= t || int(i.Table) >= len(s.tables) {
				return invalid(openflow.InstructionBadTableID)
			}
		case openflow.ExperimenterInstruction:
			return invalid(openflow.InstructionBadExperimenter)
		default:
			return invalid(openflow.InstructionUnknownInst)
		}
	}
	p := pipeline.Compile(all)
	if p.Meter != 0 && s.meters[p.Meter] == nil {
		return refuse(openflow.ErrMeterModFailed, openflow.MeterModInvalidMeter)
	}
	if err := s.checkActions(p.Apply, m); err != nil {
		return err
	}
	if err := s.checkActions(p.Write, nil); err != nil {
		return err
	}
	return s.checkGroups(slices.Concat(p.Apply, p.Write))
}

// ordered returns instructions in the order of their execution, as a switch returns them.
func ordered(all openflow.Instructions) (o openflow.Instructions) {
	for _, t := range []openflow.InstructionType{
		openflow.InstructionMeter, openflow.InstructionApplyActions, openflow.InstructionClearActions,
		openflow.InstructionWriteActions, openflow.InstructionWriteMetadata, openflow.InstructionGotoTable,
	} {
		for _, i := range all {
			if a, ok := i.(openflow.ApplyActions); ok && len(a.Actions) == 0 {
				continue // Open vSwitch keeps none
			}
			if i.Type() == t {
				o = append(o, i)
			}
		}
	}
	return o
}
