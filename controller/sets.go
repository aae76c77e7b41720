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
)

// formerKeys renames the keys that agents of earlier versions send.
var formerKeys = strings.NewReplacer(`"waiting":`, `"cgroup_missing":`, `"trouble":`, `"error":`, `"resent":`, `"retransmitted":`,
	`"resent_before":`, `"retransmitted_before":`, `"needs":`, `"learned_rate":`, `"window":`, `"window_cap":`, `"pace":`, `"pacing_cap":`)

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
	if err := json.Unmarshal([]byte(formerKeys.Replace(string(a.GetStates()))), &out.Items); err != nil {
		return out, fmt.Errorf("cannot parse the agent's connection set states: %w", err)
	}
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
