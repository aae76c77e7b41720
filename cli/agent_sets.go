package cli

import (
	"encoding/json"

	"headgate/api/agents"
	"headgate/collective/host"
)

// mostTold is how many connections of sets a controller is told of at once.
const mostTold = 2000

// setsDoing answers a controller what the sets of connections are doing.
func (r *remoteAgent) setsDoing(q *agents.SetsQuestion) *agents.SetsAnswer {
	out := &agents.SetsAnswer{Id: q.Id}
	states, err := r.sets.States()
	if err == nil {
		states, out.Cut = fewer(states, mostTold)
		out.States, err = json.Marshal(states)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// fewer leaves out connections beyond so many, and tells whether there are such.
func fewer(states []host.State, most int) (out []host.State, cut bool) {
	out = []host.State{}
	for _, s := range states {
		if len(s.Connections) > most {
			s.Connections, cut = s.Connections[:most], true
		}
		most -= len(s.Connections)
		out = append(out, s)
	}
	return out, cut
}
