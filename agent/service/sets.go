package service

import (
	"context"
	"encoding/json"

	"headgate.dev/headgate/api/agents"
	collective "headgate.dev/headgate/collective/host"
)

// maxReportedConnections limits the connections of sets in one answer to a controller.
const maxReportedConnections = 2000

// setStates answers a controller's query for the states of the connection sets.
func setStates(get func() ([]collective.State, error)) func(context.Context, *agents.SetsQuery, func(*agents.SetsAnswer)) error {
	return func(_ context.Context, q *agents.SetsQuery, answer func(*agents.SetsAnswer)) error {
		out := &agents.SetsAnswer{Id: q.Id}
		states, err := get()
		if err == nil {
			states, out.Cut = truncateSets(states, maxReportedConnections)
			out.States, err = json.Marshal(states)
		}
		if err != nil {
			out.Error = err.Error()
		}
		answer(out)
		return nil
	}
}

// truncateSets truncates the sets to a total of most connections, and reports whether any were omitted.
func truncateSets(states []collective.State, most int) (out []collective.State, cut bool) {
	out = []collective.State{}
	for _, s := range states {
		if len(s.Connections) > most {
			s.Connections, cut = s.Connections[:most], true
		}
		most -= len(s.Connections)
		out = append(out, s)
	}
	return out, cut
}
