package config

import (
	"fmt"
	"strings"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
)

// PrintReservation formats a request as a document that parses to the same request, with defaults filled in. It leaves
// out what is no part of the document: the tenant, the ports of the ends, and Avoid, for which it has AvoidNames.
func PrintReservation(r reserve.Request) []byte {
	r = r.Asked()
	p := &printer{}
	p.line("kind: Reservation")
	p.line("name: %s", quote(r.Name))
	p.line("from: %s", quote(endpointText(r.Source)))
	p.line("to: %s", quote(endpointText(r.Destination)))
	items(p, "flows", r.Flows, flowFields)
	p.line("class: %d", r.Class)
	if r.Forward > 0 {
		p.line("rate: %v", r.Forward)
	}
	if r.Reverse > 0 {
		p.line("back: %v", r.Reverse)
	}
	if r.Volume > 0 {
		p.line("volume: %v", r.Volume)
	}
	if r.Start.IsZero() {
		p.line("start: now")
	} else {
		p.line("start: %s", quote(r.Start.UTC().Format(time.RFC3339Nano)))
	}
	if r.Duration > 0 {
		p.line("for: %v", r.Duration)
	}
	if !r.Until.IsZero() {
		p.line("until: %s", quote(r.Until.UTC().Format(time.RFC3339Nano)))
	}
	if r.Paths > 0 {
		p.line("paths: %d", r.Paths)
	}
	if r.Protected {
		p.line("protected: true")
	}
	if r.OnDemand {
		p.line("push: %s", pushOnDemand)
	}
	if r.Carried != nil {
		p.line("carry: %s", carryByRelay)
	}
	p.line("disjoint: %s", DisjointText(r.Disjoint))
	if len(r.AvoidNames) > 0 {
		p.line("avoid: [%s]", strings.Join(texts(r.AvoidNames, func(ends [2]string) string {
			return fmt.Sprintf("[%s, %s]", quote(ends[0]), quote(ends[1]))
		}), ", "))
	}
	return []byte(p.String())
}

// flowFields prints the keys of a flow. There are none for a flow of all traffic.
func flowFields(f reserve.Flow) (out []string) {
	if f.Protocol != 0 {
		out = append(out, "proto: "+flowProtocolText(f.Protocol))
	}
	if f.Source != (reserve.Ports{}) {
		out = append(out, "sport: "+flowPortsText(f.Source))
	}
	if f.Destination != (reserve.Ports{}) {
		out = append(out, "dport: "+flowPortsText(f.Destination))
	}
	return out
}

// FlowText prints a flow as a document has it, such as proto: udp, dport: 5001.
func FlowText(f reserve.Flow) string {
	if f == (reserve.Flow{}) {
		return "all traffic"
	}
	return strings.Join(flowFields(f), ", ")
}

// DisjointText prints links or switches.
func DisjointText(by fabric.Disjointness) string {
	if by == fabric.BySwitch {
		return "switches"
	}
	return "links"
}
