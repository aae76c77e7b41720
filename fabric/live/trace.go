package live

import (
	"context"
	"fmt"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/session"
	"headgate.dev/headgate/fabric/trace"
)

// Trace follows a frame that arrives at a port of a topology of the network, by what the switches have now. Only those that the
// frame reaches are asked, until ctx ends. The error is that the topology does not have the port.
func (n *Network) Trace(ctx context.Context, t *fabric.Topology, at fabric.PortID, frame []byte) (*trace.Trace, error) {
	if _, ok := t.Port(at); !ok {
		return nil, fmt.Errorf("the network has no port %v", at)
	}
	return trace.Run(ctx, t, at, frame, n.reported), nil
}

// reported asks a switch for what decides the way of frames.
func (n *Network) reported(ctx context.Context, id fabric.DPID) (out trace.Switch, err error) {
	s, err := n.connected(id)
	if err != nil {
		return out, err
	}
	state, err := read(ctx, s.conn)
	if err != nil {
		return out, fmt.Errorf("cannot read its flows and groups: %w", err)
	}
	ports, err := session.Ask[*openflow.PortDescReply](ctx, s.conn, &openflow.PortDescRequest{})
	if err != nil {
		return out, fmt.Errorf("cannot read its ports: %w", err)
	}
	return trace.Switch{Flows: state.Flows, Groups: state.Groups, Ports: ports.Ports}, nil
}
