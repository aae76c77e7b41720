package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"headgate.dev/headgate/api/agents"
	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/unit"
)

// formerKeys renames the keys that agents of earlier versions send.
var formerKeys = strings.NewReplacer(`"waiting":`, `"cgroup_missing":`, `"trouble":`, `"error":`, `"resent":`, `"retransmitted":`,
	`"resent_before":`, `"retransmitted_before":`, `"needs":`, `"learned_rate":`, `"window":`, `"window_cap":`, `"pace":`, `"pacing_cap":`)

// agentSet is a set as agents send it: the rates and sizes of its connections are text.
type agentSet struct {
	api.CollectiveState
	Connections []struct {
		api.CollectiveConnection
		LearnedRate *unit.Rate  `json:"learned_rate"`
		Rate        *unit.Rate  `json:"rate"`
		WindowCap   *unit.Bytes `json:"window_cap"`
		PacingCap   *unit.Rate  `json:"pacing_cap"`
	} `json:"connections"`
}

// parseStates returns the API form of the sets that an agent has sent.
func parseStates(sent []byte) ([]api.CollectiveState, error) {
	var sets []agentSet
	if err := json.Unmarshal([]byte(formerKeys.Replace(string(sent))), &sets); err != nil {
		return nil, err
	}
	out := []api.CollectiveState{}
	for _, s := range sets {
		out = append(out, s.state())
	}
	return out, nil
}

func (s agentSet) state() api.CollectiveState {
	out := s.CollectiveState
	out.Connections = []api.CollectiveConnection{}
	for _, c := range s.Connections {
		one := c.CollectiveConnection
		one.LearnedBps, one.RateBps, one.WindowCapBytes, one.PacingCapBps = number(c.LearnedRate), number(c.Rate), number(c.WindowCap), number(c.PacingCap)
		out.Connections = append(out.Connections, one)
	}
	return out
}

// number returns a quantity as the API has it; nil if there is none.
func number[T unit.Rate | unit.Bytes](v *T) *int64 {
	if v == nil {
		return nil
	}
	n := int64(*v)
	return &n
}

// setsTimeout is how long an agent may take to answer a request for the state of its connection sets.
const setsTimeout = 3 * time.Second

// Sets implements server.Agents.
func (v view) Sets(ctx context.Context, host string) (out api.CollectiveStateList, err error) {
	out.Items = []api.CollectiveState{}
	l := v.hub.link(host)
	if l == nil {
		return out, errNotConnected
	}
	if !l.hello.Sets {
		return out, fmt.Errorf("agent version %s does not support connection sets: upgrade the agent", l.hello.Version)
	}
	a, err := query[*agents.SetsAnswer](ctx, l, setsTimeout, &agents.SetsQuery{})
	switch {
	case err != nil:
		return out, err
	case a.GetError() != "":
		return out, errors.New(a.GetError())
	}
	states, err := parseStates(a.GetStates())
	if err != nil {
		return out, fmt.Errorf("cannot parse the agent's connection set states: %w", err)
	}
	out.Items = states
	if a.Cut {
		out.Truncated = &a.Cut
	}
	l.mu.Lock()
	errs := l.enforced.GetSetErrors()
	l.mu.Unlock()
	running := map[string]bool{}
	for i, s := range out.Items {
		running[s.Set] = true
		if problem, ok := errs[s.Set]; ok {
			out.Items[i].Error = &problem
		}
	}
	for name, problem := range errs {
		if !running[name] {
			out.Items = append(out.Items, api.CollectiveState{Set: name, Error: &problem, Connections: []api.CollectiveConnection{}})
		}
	}
	return out, nil
}
