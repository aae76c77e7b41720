package trace

import (
	"fmt"
	"io"
	"strings"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
	"headgate.dev/headgate/fabric/program"
)

// Text returns the line of a hop, such as "s2 port 2: 02:00:00:00:00:01 > 02:00:00:00:00:02 label 3073 icmp 10.0.0.1 > 10.0.0.2".
func (h Hop) Text(t *fabric.Topology) string {
	line := fmt.Sprintf("%s port %v: %v", t.SwitchLabel(h.At.Switch), h.At.Port, ReadFrame(h.Frame))
	if h.Err != nil {
		line += ": " + h.Err.Error()
	}
	return line
}

// Text returns the line of a step. id is its switch.
func (s Step) Text(t *fabric.Topology, id fabric.DPID) string {
	switch s.Kind {
	case pipeline.Lookup:
		return s.lookup()
	case pipeline.Metered:
		return fmt.Sprintf("meter %d drops what exceeds its rate", s.Meter)
	case pipeline.InBucket:
		return s.bucket()
	case pipeline.Output:
		return fmt.Sprintf("out of port %v", fabric.PortNo(s.Port)) + s.where(t, id)
	case pipeline.Controller:
		why := map[openflow.PacketInReason]string{openflow.ReasonNoMatch: ", by the table-miss flow", openflow.ReasonInvalidTTL: ", because the TTL ends"}[s.Reason]
		return "to the controller" + why
	case pipeline.Skipped:
		return fmt.Sprintf("%s has no effect: %v", s.What, s.Why)
	}
	return "dropped: " + s.Why.String()
}

// Foreign reports whether the flow of a lookup is not Headgate's.
func (s Step) Foreign() bool {
	if s.Flow == nil {
		return false
	}
	_, ours := program.KindOf(s.Flow.Cookie)
	return !ours
}

func (s Step) lookup() string {
	line := fmt.Sprintf("table %d", s.Table)
	if s.Table < len(program.Pipeline) {
		line += " " + program.Pipeline[s.Table].Name
	}
	if s.Flow == nil {
		return line + ": no flow matches" + s.unsure()
	}
	match := s.Flow.Match.String()
	if match == "" {
		match = "any frame"
	}
	line += fmt.Sprintf(": priority %d, %s: ", s.Flow.Priority, match)
	_, rule, ours := program.RuleOf(openflow.TableID(s.Table), s.Flow.Cookie)
	switch {
	case ours:
		line += rule.Matches + ": " + rule.Actions
	case s.Foreign():
		line += fmt.Sprintf("a flow of another program, cookie %#x: %v", s.Flow.Cookie, s.Flow.Instructions)
	default:
		line += s.Flow.Instructions.String()
	}
	return line + s.unsure()
}

// maxUnsure is how many flows that may come first are named, chosen for Headgate.
const maxUnsure = 8

// unsure names the flows that may come first.
func (s Step) unsure() (text string) {
	for i, f := range s.Unsure {
		if i == maxUnsure {
			return text + fmt.Sprintf("; and %d more such flows", len(s.Unsure)-i)
		}
		text += fmt.Sprintf("; or, if the fields match that are not read here, priority %d, %v: %v", f.Priority, f.Match, f.Instructions)
	}
	return text
}

func (s Step) bucket() string {
	name := fmt.Sprintf("group %#x", uint32(s.Group.ID))
	if what := program.GroupName(s.Group.ID); what != "" {
		name += " " + what
	}
	kind := s.Group.Kind.String()
	if s.Group.Kind == openflow.GroupTypeFF {
		kind = "fast failover"
	}
	b := s.Group.Buckets[s.Bucket]
	line := fmt.Sprintf("%s, %s: bucket %d of %d", name, kind, s.Bucket+1, len(s.Group.Buckets))
	if s.Group.Kind == openflow.GroupTypeFF && s.Bucket > 0 {
		line += ", because " + unlive(s.Group.Buckets[:s.Bucket])
	}
	if s.Group.Kind == openflow.GroupTypeSelect && len(s.Group.Buckets) > 1 {
		line += ", one of those that the switch may choose"
	}
	return line + ": " + b.Actions.String()
}

// unlive says why buckets are not live.
func unlive(all []pipeline.Bucket) string {
	var why []string
	for _, b := range all {
		switch {
		case b.WatchPort == openflow.PortAny:
			why = append(why, fmt.Sprintf("group %#x is not live", uint32(b.WatchGroup)))
		default:
			why = append(why, fmt.Sprintf("port %v is down", b.WatchPort))
		}
	}
	return strings.Join(why, " and ")
}

// where says where a frame goes that leaves a port.
func (s Step) where(t *fabric.Topology, id fabric.DPID) string {
	switch s.End {
	case Delivered:
		var names []string
		for _, h := range s.Hosts {
			name := h.HostID.String()
			if h.Name != "" {
				name = h.Name + " (" + name + ")"
			}
			names = append(names, name)
		}
		return ": delivered to host " + strings.Join(names, ", ")
	case NoHost:
		return ": no host that takes the frame is known there"
	case Local:
		return ": to the switch itself"
	case Lost:
		return ": dropped: " + s.Why.String()
	}
	to := ""
	if l, ok := t.LinkFrom(fabric.PortID{Switch: id, Port: fabric.PortNo(s.Port)}); ok {
		to = fmt.Sprintf(" to %s/%v", t.SwitchLabel(l.To.Switch), l.To.Port)
	}
	switch s.End {
	case Again:
		to += ", as another copy of the frame has come there"
	case Loop:
		to += ": a loop: the same frame was at this port before"
	case Limit:
		to += ": not followed, because the trace is cut"
	}
	return to
}

// Write writes the hops, each with its steps.
func (t *Trace) Write(w io.Writer) error {
	for _, h := range t.Hops {
		if _, err := fmt.Fprintln(w, h.Text(t.Topology)); err != nil {
			return err
		}
		for _, s := range h.Steps {
			if _, err := fmt.Fprintln(w, strings.Repeat("  ", s.Indent())+s.Text(t.Topology, h.At.Switch)); err != nil {
				return err
			}
		}
	}
	if t.Cut != "" {
		_, err := fmt.Fprintln(w, CutText(t.Cut))
		return err
	}
	return nil
}

// CutText says that a bound has ended a trace, for people.
func CutText(bound string) string {
	return "the trace is cut: it has " + bound + ", the maximum"
}

// Indent is how far the line of a step is indented: a table's by 1, and what a flow or a bucket does by more.
func (s Step) Indent() int {
	if s.Kind == pipeline.Lookup {
		return 1
	}
	return 2 + s.Depth
}
