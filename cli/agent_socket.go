package cli

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"headgate/agent"
	"headgate/api/local"
	"headgate/internal/ask"
)

func socketFlag(c *cobra.Command, usage string) *string {
	return c.Flags().String("socket", local.Socket, usage)
}

// agentSocket is the Unix socket at which an agent accepts requests of local programs.
type agentSocket struct {
	path     string // "" disables the socket
	required bool   // set by the user, not the default
}

// open opens the socket. Each network namespace may have an agent, and only one of them can have the
// default path: an agent that finds the default path in use runs without a socket.
func (s agentSocket) open(ag *agent.Agent) (close func() error, err error) {
	nothing := func() error { return nil }
	if s.path == "" {
		return nothing, nil
	}
	l, err := ag.Serve(s.path)
	switch {
	case err == nil:
		return l.Close, nil
	case s.required && errors.Is(err, ask.ErrInUse):
		return nil, fmt.Errorf("%w: set --socket to another path", err)
	case s.required:
		return nil, err
	}
	slog.Warn("cannot open the agent's socket, programs cannot assign connections: set --socket to another path", "error", err)
	return nothing, nil
}
