package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/controller/frames"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/fabric/trace"
)

// traceTimeout is how long the switches that a frame reaches may take to list what they have.
const traceTimeout = 10 * time.Second

var errTraceTimeout = fmt.Errorf("not asked, because the switches before took %v", traceTimeout)

// NetworkTrace implements server.Fabric.
func (v networkView) NetworkTrace(ctx context.Context, text, from string) (out api.NetworkTrace, err error) {
	p, err := frames.Parse(text)
	if err != nil {
		return out, &server.Refusal{Status: http.StatusBadRequest, Detail: err.Error()}
	}
	n, err := v.live()
	if err != nil {
		return out, err
	}
	t, err := n.Topology()
	if err != nil {
		return out, err
	}
	at, host, err := originIn(t, p, from)
	if err != nil {
		return out, err
	}
	frame, err := p.Frame(t, host)
	switch {
	case errors.Is(err, frames.ErrNoHost):
		return out, &server.Refusal{Status: http.StatusNotFound, Detail: err.Error()}
	case err != nil:
		return out, &server.Refusal{Status: http.StatusBadRequest, Detail: err.Error()}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, traceTimeout, errTraceTimeout)
	defer cancel()
	got, err := n.Trace(ctx, t, at, frame)
	if err != nil {
		return out, &server.Refusal{Status: http.StatusConflict, Detail: err.Error()}
	}
	return traceOf(got, maxTraceText), nil
}

// originIn returns the port at which a packet enters the network, and the host that sends it.
func originIn(t *fabric.Topology, p frames.Packet, from string) (at fabric.PortID, h fabric.Host, err error) {
	h, at, ok := hostNamed(t, p, from)
	if !ok && !strings.Contains(from, "/") && len(findEnds(t, from)) > 0 {
		return at, h, &server.Refusal{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s is a switch: add a slash and the port at which the packet arrives, such as %s/1", from, from)}
	}
	if !ok {
		if at, ok = portNamed(t, from); !ok {
			return at, h, &server.Refusal{Status: http.StatusNotFound, Detail: fmt.Sprintf("no host and no port is known as %s: write the name, MAC or address of a host, or a port as SWITCH/PORT", from)}
		}
		h = senderAt(t, p, at)
	}
	if p.SMAC != [6]byte{} {
		h.MAC = p.SMAC
	}
	if h.MAC == (fabric.MAC{}) {
		return at, h, &server.Refusal{Status: http.StatusBadRequest, Detail: fmt.Sprintf("no host is known at %s: add smac and the MAC address of the sender to the packet", t.PortLabel(at))}
	}
	return at, h, nil
}

// hostNamed returns the host that a text names. Of several in different VLANs it is the one in the packet's.
func hostNamed(t *fabric.Topology, p frames.Packet, text string) (h fabric.Host, at fabric.PortID, ok bool) {
	for _, end := range findEnds(t, text) {
		if end.host == nil {
			continue
		}
		if !ok || end.host.VLAN == p.VLAN {
			h, ok = *end.host, true
		}
		if h.VLAN == p.VLAN {
			break
		}
	}
	return h, h.At, ok
}

// portNamed returns the port that a text names: the id or name of a switch, a slash, and a number or a name.
func portNamed(t *fabric.Topology, text string) (at fabric.PortID, ok bool) {
	name, port, _ := strings.Cut(text, "/")
	ends := findEnds(t, name)
	if len(ends) == 0 || ends[0].host != nil {
		return at, false
	}
	s, _ := t.Switch(ends[0].at)
	number, err := strconv.ParseUint(port, 10, 32)
	for _, one := range s.Ports {
		if err == nil && uint64(one.No) == number || err != nil && one.Name == port {
			return fabric.PortID{Switch: s.ID, Port: one.No}, true
		}
	}
	return at, false
}

// senderAt returns the host of a port that has the packet's source address, or else the first one.
func senderAt(t *fabric.Topology, p frames.Packet, at fabric.PortID) (h fabric.Host) {
	for i, one := range t.HostsAt(at) {
		if i == 0 {
			h = one
		}
		for _, a := range one.Addrs {
			if a == p.Src {
				return one
			}
		}
	}
	return h
}

// stepKinds are the names of steps in the API.
var stepKinds = map[pipeline.Kind]api.NetworkTraceStepKind{
	pipeline.Lookup: api.StepTable, pipeline.Metered: api.StepMeter, pipeline.InBucket: api.StepBucket, pipeline.Output: api.StepOutput,
	pipeline.Controller: api.StepController, pipeline.Skipped: api.StepSkipped, pipeline.Dropped: api.StepDropped,
}

// maxTraceText is how many bytes the texts of an answer have, chosen for Headgate: some 100,000 steps. A flow can have a text of 200 KB.
const maxTraceText = 32 << 20

// traceOf returns the API form of a trace, of which the texts have at most so many bytes.
func traceOf(t *trace.Trace, most int) api.NetworkTrace {
	out := api.NetworkTrace{Hops: []api.NetworkTraceHop{}}
	cut := t.Cut
	for _, h := range t.Hops {
		f := trace.ReadFrame(h.Frame)
		one := api.NetworkTraceHop{
			Switch: h.At.Switch.String(), InPort: int64(h.At.Port), Frame: f.String(), Text: h.Text(t.Topology), Vlan: nonZero(int(f.VLAN)), Steps: []api.NetworkTraceStep{},
		}
		most -= len(one.Text) + len(one.Frame)
		if s, ok := t.Topology.Switch(h.At.Switch); ok {
			one.Name = nonZero(s.Name)
		}
		if len(f.Labels) > 0 {
			one.Label, one.Rerouted = nonZero(int(f.Labels[0].ID)), nonZero(f.Labels[0].Rerouted)
		}
		if h.Err != nil {
			one.Error = nonZero(h.Err.Error())
		}
		for _, s := range h.Steps {
			step := stepOf(t.Topology, h.At.Switch, s)
			if most -= len(step.Text) + len(textOf(step.Match)) + len(textOf(step.Instructions)); most < 0 {
				cut, one.Error = "32 MiB of text", nonZero(trace.ErrCut.Error())
				break
			}
			one.Steps = append(one.Steps, step)
		}
		if out.Hops = append(out.Hops, one); most < 0 {
			break
		}
	}
	endAtCut(out.Hops)
	if cut != "" {
		out.Cut = nonZero(trace.CutText(cut))
	}
	return out
}

// endAtCut ends the steps that lead to hops that are not in the answer.
func endAtCut(hops []api.NetworkTraceHop) {
	for _, h := range hops {
		for i := range h.Steps {
			if s := &h.Steps[i]; s.Next != nil && *s.Next >= len(hops) {
				end := api.EndLimit
				s.Next, s.End = nil, &end
			}
		}
	}
}

func textOf(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func stepOf(t *fabric.Topology, id fabric.DPID, s trace.Step) api.NetworkTraceStep {
	out := api.NetworkTraceStep{Kind: stepKinds[s.Kind], Indent: s.Indent(), Text: s.Text(t, id), Next: nonZero(s.Next)}
	if s.End != trace.Within {
		end := api.NetworkTraceStepEnd(s.End.String())
		out.End = &end
	}
	if s.Kind == pipeline.Lookup {
		out.Table = &s.Table
		if s.Table < len(program.Pipeline) {
			out.TableName = &program.Pipeline[s.Table].Name
		}
	}
	if f := s.Flow; f != nil {
		priority := int(f.Priority)
		out.Priority, out.Match, out.Instructions = &priority, nonZero(f.Match.String()), nonZero(f.Instructions.String())
		out.Cookie, out.Foreign = nonZero(fmt.Sprintf("%#x", f.Cookie)), nonZero(s.Foreign())
		if _, rule, ok := program.RuleOf(openflow.TableID(s.Table), f.Cookie); ok {
			out.Rule = nonZero(rule.Matches + ": " + rule.Actions)
		}
	}
	if s.Group != nil {
		number, bucket := int64(s.Group.ID), s.Bucket+1
		out.Group, out.Bucket = &number, &bucket
	}
	if s.Kind == pipeline.Output {
		port := int64(s.Port)
		out.Port = &port
	}
	if s.Kind == pipeline.Metered {
		meter := int64(s.Meter)
		out.Meter = &meter
	}
	if len(s.Hosts) > 0 {
		macs := []string{}
		for _, h := range s.Hosts {
			macs = append(macs, h.MAC.String())
		}
		out.Hosts = &macs
	}
	return out
}
