package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headgate/api"
	"headgate/api/agents"
)

// setsPatience is how long an agent may take to say what its sets are doing.
const setsPatience = 3 * time.Second

// Sets is part of api.Agents.
func (v view) Sets(ctx context.Context, host string) (out api.CollectiveStateList, err error) {
	out.Items = []api.CollectiveState{}
	l := v.hub.link(host)
	if l == nil {
		return out, errors.New("its agent is not connected to this controller")
	}
	if !l.hello.Sets {
		return out, fmt.Errorf("its agent has the version %s, which runs no sets: upgrade it", l.hello.Version)
	}
	answer, err := l.ask(ctx, setsPatience, func(id uint64) *agents.ToAgent {
		return &agents.ToAgent{Message: &agents.ToAgent_Sets{Sets: &agents.SetsQuestion{Id: id}}}
	})
	a := answer.GetSets()
	switch {
	case err != nil:
		return out, errors.New("its agent does not answer")
	case a.GetError() != "":
		return out, errors.New(a.GetError())
	}
	if err := json.Unmarshal(a.GetStates(), &out.Items); err != nil {
		return out, fmt.Errorf("what its agent says of it cannot be read: %w", err)
	}
	if a.Cut {
		out.Cut = &a.Cut
	}
	l.mu.Lock()
	troubles := l.enforced.GetSetTroubles()
	l.mu.Unlock()
	running := map[string]bool{}
	for i, s := range out.Items {
		running[s.Set] = true
		if trouble, ok := troubles[s.Set]; ok {
			out.Items[i].Trouble = &trouble
		}
	}
	for name, trouble := range troubles {
		if !running[name] {
			out.Items = append(out.Items, api.CollectiveState{Set: name, Trouble: &trouble, Connections: []api.CollectiveConnection{}})
		}
	}
	return out, nil
}
