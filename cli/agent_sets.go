package cli

import (
	"encoding/json"

	"headgate/api/agents"
	"headgate/collective/host"
)

// maxReportedConnections limits the connections of sets in one answer to a controller.
const maxReportedConnections = 2000

// setStates answers a controller's query for the state of the connection sets.
func (r *remoteAgent) setStates(q *agents.SetsQuestion) *agents.SetsAnswer {
	out := &agents.SetsAnswer{Id: q.Id}
	states, err := r.waitSets.States()
	if err == nil {
		states, out.Cut = truncateSets(states, maxReportedConnections)
		out.States, err = json.Marshal(states)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// truncateSets truncates the sets to a total of most connections, and reports whether any were omitted.
func truncateSets(states []host.State, most int) (out []host.State, cut bool) {
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
