package controller

import (
	"fmt"
	"net/http"
	"net/netip"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/fabric"
)

// pathEnd is a host or a switch at an end of a path.
type pathEnd struct {
	at   fabric.DPID
	host *fabric.Host // nil for a switch
}

// NetworkPath implements server.Fabric.
func (v networkView) NetworkPath(from, to string) (out api.NetworkPath, err error) {
	n, err := v.live()
	if err != nil {
		return out, err
	}
	t, err := n.Topology()
	if err != nil {
		return out, err
	}
	return pathIn(t, from, to)
}

// pathIn returns the shortest path between two hosts or switches of a topology.
func pathIn(t *fabric.Topology, from, to string) (out api.NetworkPath, err error) {
	a, b := findEnds(t, from), findEnds(t, to)
	for text, found := range map[string][]pathEnd{from: a, to: b} {
		if len(found) == 0 {
			return out, &server.Refusal{Status: http.StatusNotFound, Detail: fmt.Sprintf("no host and no switch is known as %s", text)}
		}
	}
	for _, a := range a {
		for _, b := range b {
			if a.host == nil || b.host == nil || a.host.VLAN == b.host.VLAN {
				return pathBetween(t, a, b, from, to)
			}
		}
	}
	return out, &server.Refusal{Status: http.StatusConflict, Detail: fmt.Sprintf("%s and %s are in different VLANs", from, to)}
}

// findEnds returns the switch, or all hosts, that a text names: an id, a MAC, an address or a name.
func findEnds(t *fabric.Topology, text string) (found []pathEnd) {
	if id, err := fabric.ParseDPID(text); err == nil {
		if _, ok := t.Switch(id); ok {
			return []pathEnd{{at: id}}
		}
	}
	if s, ok := t.SwitchNamed(text); ok {
		return []pathEnd{{at: s.ID}}
	}
	mac, notMAC := fabric.ParseMAC(text)
	addr, notAddr := netip.ParseAddr(text)
	for _, h := range t.Hosts() {
		is := h.Name == text || notMAC == nil && h.MAC == mac
		for _, a := range h.Addrs {
			is = is || notAddr == nil && a == addr
		}
		if is {
			found = append(found, pathEnd{h.At.Switch, &h})
		}
	}
	return found
}

func pathBetween(t *fabric.Topology, a, b pathEnd, from, to string) (out api.NetworkPath, err error) {
	path, ok := t.Shortest(a.at, b.at, fabric.Cost, nil)
	if !ok {
		return out, &server.Refusal{Status: http.StatusConflict, Detail: fmt.Sprintf("no links lead from %s to %s", from, to)}
	}
	hop := api.NetworkHop{Switch: a.at.String(), InPort: portOf(a)}
	for _, l := range path {
		port, next := int64(l.From.Port), int64(l.To.Port)
		hop.OutPort = &port
		out.Hops = append(out.Hops, hop)
		hop = api.NetworkHop{Switch: l.To.Switch.String(), InPort: &next}
		if link, ok := t.Link(l); ok && (out.CapacityBps == nil || int64(link.Capacity) < *out.CapacityBps) {
			capacity := int64(link.Capacity)
			out.CapacityBps = &capacity
		}
	}
	hop.OutPort = portOf(b)
	out.Hops = append(out.Hops, hop)
	return out, nil
}

// portOf returns the port of a host, nil for a switch.
func portOf(e pathEnd) *int64 {
	if e.host == nil {
		return nil
	}
	port := int64(e.host.At.Port)
	return &port
}
