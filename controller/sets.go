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
	a, err := l.askSets(ctx)
	switch {
	case err != nil:
		return out, errors.New("its agent does not answer")
	case a.Error != "":
		return out, errors.New(a.Error)
	}
	if err := json.Unmarshal(a.States, &out.Items); err != nil {
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

// askSets asks an agent for them.
func (l *link) askSets(ctx context.Context) (*agents.SetsAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, setsPatience)
	defer cancel()
	to := make(chan *agents.SetsAnswer, 1)
	l.mu.Lock()
	l.asked++
	id := l.asked
	l.sets[id] = to
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.sets, id)
		l.mu.Unlock()
	}()
	question := &agents.ToAgent{Message: &agents.ToAgent_Sets{Sets: &agents.SetsQuestion{Id: id}}}
	select {
	case l.out <- question:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-to:
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
