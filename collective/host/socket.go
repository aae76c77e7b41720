package host

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"headgate/internal/ask"
)

// socketDir has a socket for each program that runs.
const socketDir = "/run/headgate/collective"

func socketPath(instance string) string { return filepath.Join(socketDir, instance+".sock") }

// request is what is asked for at the socket: with the descriptor of a connection beside it to
// join a set, or without for what the sets are doing.
type request struct {
	Join   string  `json:"join,omitempty"` // a set
	Weight float64 `json:"weight,omitempty"`
}

type answer struct {
	ask.Failure
	States []State `json:"states,omitempty"`
}

// Server answers at the socket of a Host.
type Server struct {
	host *Host
	*ask.Server
}

// Serve opens the socket of a program. Anybody may ask to join; what the sets are doing is
// for root. Only one of a name runs at a time (sockops.Open).
func (h *Host) Serve(instance string) (*Server, error) {
	s := &Server{host: h}
	var err error
	if s.Server, err = ask.Serve(socketPath(instance), s.answer); err != nil {
		return nil, fmt.Errorf("cannot be asked: %w", err)
	}
	return s, nil
}

func (s *Server) answer(q ask.Question) any {
	var r request
	if err := json.Unmarshal(q.Text, &r); err != nil {
		return ask.FailureOf(fmt.Errorf("the request is no JSON object, such as {\"join\": \"db\"}: %w", err))
	}
	var out answer
	var err error
	switch {
	case r.Join != "":
		var refused error
		if err = s.host.asks.Do(func() { refused = s.host.adopt(q.User, r, q.FD) }); err == nil {
			err = refused
		}
	case q.User != 0:
		err = ask.Denied("what the sets are doing is for root")
	default:
		out.States, err = s.States()
	}
	out.Failure = ask.FailureOf(err)
	return out
}

// States is what the sets are doing.
func (s *Server) States() (states []State, err error) {
	err = s.host.asks.Do(func() { states = s.host.State() })
	return states, err
}
