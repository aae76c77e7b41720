package api

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
)

// StartProbe has a host measure.
func (s *Server) StartProbe(w http.ResponseWriter, r *http.Request, host string, _ StartProbeParams) {
	want, err := body[ProbeRequest](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	var b [8]byte
	rand.Read(b[:])
	id := hex.EncodeToString(b[:])
	s.change(w, r, "probes/"+host, func(c *call) (answer, error) {
		if err := c.host(host); err != nil {
			return answer{}, err
		}
		if _, connected := s.Agents.State(host); !connected {
			return answer{}, refuse(http.StatusConflict, "the agent of %s is not connected", host)
		}
		c.resource = "probes/" + host
		c.then = func() {
			if err := s.Agents.Probe(host, id, want); err != nil {
				slog.Warn("a measurement does not begin", "host", host, "error", err)
			}
		}
		return shows(http.StatusAccepted, Probe{Id: id, State: "waiting"})
	})
}

// GetProbe shows what was measured.
func (s *Server) GetProbe(w http.ResponseWriter, r *http.Request, host, id string) {
	out, ok := s.Agents.Probed(host, id)
	if !ok {
		problem(w, r, notFound("measurement", id))
		return
	}
	show(w, r, out, nil)
}
