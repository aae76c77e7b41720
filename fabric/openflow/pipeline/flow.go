package pipeline

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// Flow is an entry of a table.
type Flow struct {
	*Matcher
	Table    openflow.TableID
	Priority uint16
	Cookie   uint64
	Program  *Program
}

// tableMiss reports whether the flow is the table-miss flow (section 5.4).
func (f *Flow) tableMiss() bool { return f.Priority == 0 && f.Mask == Key{} }

// Program is the instructions of a flow in the order of their execution (section 5.9).
type Program struct {
	Meter          openflow.MeterID // 0 if there is none
	Apply          openflow.Actions
	Clear          bool
	Write          openflow.Actions
	Metadata, Mask uint64
	Next           int // the table, or -1
	// Unknown are those that only the switch can execute.
	Unknown []fmt.Stringer
}

// Compile returns the program of instructions that a switch has accepted.
func Compile(all openflow.Instructions) (p Program) {
	p.Next = -1
	for _, i := range all {
		switch i := i.(type) {
		case openflow.Meter:
			p.Meter = i.Meter
		case openflow.ApplyActions:
			p.Apply = i.Actions
		case openflow.ClearActions:
			p.Clear = true
		case openflow.WriteActions:
			p.Write = i.Actions
		case openflow.WriteMetadata:
			p.Metadata, p.Mask = i.Metadata, i.Mask
		case openflow.GotoTable:
			p.Next = int(i.Table)
		default:
			p.Unknown = append(p.Unknown, i)
		}
	}
	return p
}

// Uses reports whether an action is in the lists of a program.
func (p *Program) Uses(is func(openflow.Action) bool) bool {
	return slices.ContainsFunc(p.Apply, is) || slices.ContainsFunc(p.Write, is)
}

// Group is an entry of the group table (section 5.6).
type Group struct {
	ID      openflow.GroupID
	Kind    openflow.GroupType
	Buckets []Bucket
}

// Bucket is a bucket of a group, with its actions as a set.
type Bucket struct {
	openflow.Bucket
	set actionSet
}

// NewGroup returns a group.
func NewGroup(id openflow.GroupID, kind openflow.GroupType, buckets []openflow.Bucket) Group {
	g := Group{ID: id, Kind: kind, Buckets: make([]Bucket, len(buckets))}
	for i, b := range buckets {
		g.Buckets[i].Bucket = b
		g.Buckets[i].set.write(b.Actions)
	}
	return g
}

// Watches reports whether a bucket is live only if a port or a group is.
func Watches(b openflow.Bucket) bool {
	return b.WatchPort != openflow.PortAny || b.WatchGroup != openflow.GroupAny
}
