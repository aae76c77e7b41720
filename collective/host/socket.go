package host

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"headgate.dev/headgate/internal/ask"
)

// socketDir has a socket for each running process.
const socketDir = "/run/headgate/collective"

func socketPath(instance string) string { return filepath.Join(socketDir, instance+".sock") }

// request is a request at the socket: to join a set, with the descriptor of a connection,
// or for the states of the sets, without one.
type request struct {
	Join   string  `json:"join,omitempty"` // name of a set
	Weight float64 `json:"weight,omitempty"`
}

type answer struct {
	ask.ErrorResponse
	States []State `json:"states,omitempty"`
}

// Server answers requests at the socket of a Host.
type Server struct {
	host *Host
	*ask.Server
}

// Serve opens the socket of a process. Every user may request to join; only root may
// query the states. Only one process with a name runs at a time (sockops.Open).
func (h *Host) Serve(instance string) (*Server, error) {
	s := &Server{host: h}
	var err error
	if s.Server, err = ask.Serve(socketPath(instance), s.answer); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) answer(q ask.Request) any {
	var r request
	if err := json.Unmarshal(q.Text, &r); err != nil {
		return ask.NewErrorResponse(fmt.Errorf("request is not a JSON object such as {\"join\": \"db\"}: %w", err))
	}
	var out answer
	var err error
	switch {
	case r.Join != "":
		var refused error
		if err = s.host.requests.Do(func() { refused = s.host.addConnection(q.User, r, q.FD) }); err == nil {
			err = refused
		}
	case q.User != 0:
		err = ask.Denied("only root may query the state of the sets")
	default:
		out.States, err = s.States()
	}
	out.ErrorResponse = ask.NewErrorResponse(err)
	return out
}

// States returns the states of the sets.
func (s *Server) States() (states []State, err error) {
	err = s.host.requests.Do(func() { states = s.host.State() })
	return states, err
}
