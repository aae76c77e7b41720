package agent

import "headgate/shaper"

// action is what to do about a device.
type action int

const (
	leave    action = iota // what is in force stays
	give                   // apply what the files say
	mend                   // apply anew what was applied by hand, and is damaged
	takeAway               // the files no longer name the device
)

func (a action) String() string { return [...]string{"leave", "give", "mend", "take away"}[a] }

// memory is what the agent knows of a device beyond what there is to see.
type memory struct {
	name   string
	want   *want  // nil if the files no longer name the device
	force  bool   // the files were read, or the device is new: they win over what was applied by hand
	mine   string // mark of the plan that the agent put in force last, or ""
	done   string // cause of the last apply that succeeded
	timing timing
	said   string // the last complaint, which is not repeated
	// trouble is why what is wanted is not in force, "" if it is.
	trouble string
	byHand  bool // because of what was applied by hand
	// assigned are the connections that the agent, or an earlier one, put in groups.
	assigned []shaper.Assignment
}

// decide says what to do about a device on which state is in force, or nothing
// of ours if it is nil.
func decide(m *memory, state *shaper.State) action {
	if m.want == nil {
		if state != nil && mark(state.Plan) == m.mine {
			return takeAway
		}
		return leave
	}
	if state == nil || m.force {
		return give
	}
	switch mark(state.Plan) {
	case m.mine, mark(m.want.plan):
		return give
	}
	if len(state.Drift) > 0 {
		return mend
	}
	return leave
}
