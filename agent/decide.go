package agent

import (
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// action is the change that a device needs.
type action int

const (
	keep     action = iota // keep the actual state
	apply                  // apply the configuration
	repair                 // repair a plan that was applied by hand
	takeAway               // clear a device that is no longer configured
)

func (a action) String() string { return [...]string{"keep", "apply", "repair", "clear"}[a] }

// deviceState is the agent's record of a device: the data that cannot be read from the kernel.
type deviceState struct {
	name         string
	desired      *DesiredState // nil if the configuration no longer names the device
	force        bool          // the files were reloaded, or the device is new: the configuration overrides a plan applied by hand
	appliedHash  string        // hash of the plan that the agent applied last, or ""
	appliedCause string        // cause of the last successful apply
	schedule     schedule
	lastLog      string // the last log message, which is not repeated
	// problem is the reason why the desired state is not in force, "" if it is.
	problem string
	byHand  bool // the reason is a plan or change applied by hand
	// assigned are the connections that this agent, or a previous one, assigned to groups.
	assigned []shaper.Assignment
	// limits are the limits of reservations that the agent has set, by the path of the group.
	limits map[string]unit.Rate
}

// decide chooses the action for a device. state is nil if the device has no plan of Headgate.
func decide(m *deviceState, state *shaper.State) action {
	if m.desired == nil {
		if state != nil && planHash(state.Plan) == m.appliedHash {
			return takeAway
		}
		return keep
	}
	if state == nil || m.force {
		return apply
	}
	switch planHash(state.Plan) {
	case m.appliedHash, planHash(m.desired.plan):
		return apply
	}
	if len(state.Drift) > 0 {
		return repair
	}
	return keep
}
