package server

import (
	"net/http"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/store"
)

// ListRelays lists the states of the relay agents that run on a host.
func (s *Server) ListRelays(w http.ResponseWriter, r *http.Request, host string) {
	if _, err := get[store.Host](s, r, store.Key(store.Hosts, host), notFound("host", host)); err != nil {
		problem(w, r, err)
		return
	}
	out, err := s.Agents.Relays(r.Context(), host)
	_, connected := s.Agents.State(host)
	out.Connected = &connected
	if err != nil {
		text := err.Error()
		out.Error = &text
	}
	writeResource(w, r, out, nil)
}

// ListRelayEnded lists the last connections of a relay agent that have ended.
func (s *Server) ListRelayEnded(w http.ResponseWriter, r *http.Request, host, relay string) {
	_, err := get[store.Host](s, r, store.Key(store.Hosts, host), notFound("host", host))
	var out api.RelayEndedList
	if err == nil {
		if out, err = s.Agents.RelayEnded(r.Context(), host, relay); err != nil {
			err = refuse(http.StatusConflict, "cannot list the ended connections of relay agent %s on %s: %v", relay, host, err)
		}
	}
	writeResource(w, r, out, err)
}
