package server

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"

	api "headgate.dev/headgate/api/client"
)

// StartProbe starts a measurement on a host.
func (s *Server) StartProbe(w http.ResponseWriter, r *http.Request, host string, _ api.StartProbeParams) {
	want, err := parseBody[api.ProbeRequest](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	var b [8]byte
	rand.Read(b[:])
	id := hex.EncodeToString(b[:])
	s.change(w, r, "probes/"+host, func(c *changeRequest) (response, error) {
		if err := c.requireHost(host); err != nil {
			return response{}, err
		}
		if _, connected := s.Agents.State(host); !connected {
			return response{}, refuse(http.StatusConflict, "the agent of host %s is not connected", host)
		}
		c.resource = "probes/" + host
		c.afterCommit = func() {
			if err := s.Agents.Probe(host, id, want); err != nil {
				slog.Warn("cannot start measurement", "host", host, "error", err)
			}
		}
		return respondWith(http.StatusAccepted, api.Probe{Id: id, State: "waiting"})
	})
}

// GetProbe shows the state and result of a measurement.
func (s *Server) GetProbe(w http.ResponseWriter, r *http.Request, host, id string) {
	out, ok := s.Agents.ProbeResult(host, id)
	if !ok {
		problem(w, r, notFound("measurement", id))
		return
	}
	writeResource(w, r, out, nil)
}
