package network

import (
	"context"
	"errors"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/session"
)

// Values chosen for Headgate.
const (
	// roleTimeout is how long a switch may take for a change of role.
	roleTimeout = 5 * time.Second
	// roleAttempts is how often a change is tried: a master may be elected between the question and the request.
	roleAttempts = 3
)

// noGeneration is the generation of a switch that has had no master (OpenFlow 1.3.5, section 7.3.9).
const noGeneration = ^uint64(0)

// yield becomes a slave of a switch, of whatever generation its master is.
func yield(ctx context.Context, c *session.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, roleTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		is, err := c.SetRole(ctx, openflow.RoleNoChange, 0)
		if err != nil {
			return err
		}
		generation := is.GenerationID
		if generation == noGeneration {
			generation = 0
		}
		if _, err = c.SetRole(ctx, openflow.RoleSlave, generation); err == nil || !stale(err) || attempt == roleAttempts {
			return err
		}
	}
}

// stale reports whether a switch has refused a role because it knows a newer generation.
func stale(err error) bool {
	var refused *session.Refused
	return errors.As(err, &refused) && refused.Reason.Kind == openflow.ErrRoleRequestFailed && refused.Reason.Code == openflow.RoleRequestStale
}
