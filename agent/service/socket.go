package service

import (
	"errors"
	"fmt"
	"log/slog"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/internal/ask"
)

// openSocket opens the socket at which the agent accepts requests of programs. Each network namespace
// may have an agent, and only one of them can have the default path: an agent that finds the default
// path in use runs without a socket.
func (o Options) openSocket(ag *agent.Agent) (close func() error, err error) {
	nothing := func() error { return nil }
	if o.Socket == "" {
		return nothing, nil
	}
	l, err := ag.Serve(o.Socket)
	switch {
	case err == nil:
		return l.Close, nil
	case o.SocketRequired && errors.Is(err, ask.ErrInUse):
		return nil, fmt.Errorf("%w: set --socket to another path", err)
	case o.SocketRequired:
		return nil, err
	}
	slog.Warn("cannot open the agent's socket, programs cannot assign connections: set --socket to another path", "error", err)
	return nothing, nil
}
