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

// agentSocket is where an agent listens to programs of its host.
type agentSocket struct {
	path  string // "" is nowhere
	asked bool   // by the user, rather than by default
}

// open opens it. There may be an agent in each network namespace, and one of them has the ordinary
// path: the others do without what they are for.
func (s agentSocket) open(ag *agent.Agent) (close func() error, err error) {
	nothing := func() error { return nil }
	if s.path == "" {
		return nothing, nil
	}
	l, err := ag.Serve(s.path)
	switch {
	case err == nil:
		return l.Close, nil
	case s.asked && errors.Is(err, ask.ErrTaken):
		return nil, fmt.Errorf("%w: write --socket and another path", err)
	case s.asked:
		return nil, err
	}
	slog.Warn("programs cannot put connections in groups at this agent: write --socket and a path of its own", "error", err)
	return nothing, nil
}
