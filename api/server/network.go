package server

import (
	"context"
	"net/http"

	api "headgate.dev/headgate/api/client"
)

// Fabric shows the network of switches. Errors are a Refusal with status 503 at a controller that is not the leader.
type Fabric interface {
	// Network returns the network as it is now.
	Network() (api.Network, error)
	// NetworkEvents returns the last events that the parameters ask for, the oldest first.
	NetworkEvents(api.ListNetworkEventsParams) (api.NetworkEventList, error)
	// NetworkPath returns the shortest path between two hosts or switches.
	NetworkPath(from, to string) (api.NetworkPath, error)
	// NetworkHistory returns what a port has sent.
	NetworkHistory(id string, port int64) (api.NetworkLinkHistory, error)
	// NetworkTrace follows a packet of a host or from a port through the tables of the switches.
	NetworkTrace(ctx context.Context, packet, from string) (api.NetworkTrace, error)
	// SwitchFlows returns the flows that a switch reports.
	SwitchFlows(ctx context.Context, id string) (api.SwitchFlowList, error)
}

// GetNetwork shows the switches, links and hosts.
func (s *Server) GetNetwork(w http.ResponseWriter, r *http.Request) {
	out, err := s.Fabric.Network()
	writeResource(w, r, out, err)
}

// ListNetworkEvents lists what has happened in the network.
func (s *Server) ListNetworkEvents(w http.ResponseWriter, r *http.Request, p api.ListNetworkEventsParams) {
	out, err := s.Fabric.NetworkEvents(p)
	writeResource(w, r, out, err)
}

// GetNetworkPath shows the path between two hosts or switches.
func (s *Server) GetNetworkPath(w http.ResponseWriter, r *http.Request, p api.GetNetworkPathParams) {
	out, err := s.Fabric.NetworkPath(p.From, p.To)
	writeResource(w, r, out, err)
}

// GetNetworkLinkHistory shows what a port has sent.
func (s *Server) GetNetworkLinkHistory(w http.ResponseWriter, r *http.Request, id string, port int64) {
	out, err := s.Fabric.NetworkHistory(id, port)
	writeResource(w, r, out, err)
}

// GetNetworkTrace follows a packet through the network.
func (s *Server) GetNetworkTrace(w http.ResponseWriter, r *http.Request, p api.GetNetworkTraceParams) {
	out, err := s.Fabric.NetworkTrace(r.Context(), p.Packet, p.From)
	writeResource(w, r, out, err)
}

// ListSwitchFlows lists the flows of a switch.
func (s *Server) ListSwitchFlows(w http.ResponseWriter, r *http.Request, id string) {
	out, err := s.Fabric.SwitchFlows(r.Context(), id)
	writeResource(w, r, out, err)
}
