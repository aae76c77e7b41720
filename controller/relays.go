package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/api/agents"
	api "headgate.dev/headgate/api/client"
)

// relaysTimeout is how long an agent may take to query the relay agents of its host.
const relaysTimeout = 3 * time.Second

// Relays implements server.Agents.
func (v view) Relays(ctx context.Context, host string) (out api.RelayList, err error) {
	out.Items = []api.Relay{}
	l := v.hub.link(host)
	if l == nil {
		return out, errNotConnected
	}
	a, err := query[*agents.RelaysAnswer](ctx, l, relaysTimeout, &agents.RelaysQuery{})
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(a.States, &out.Items); err != nil {
		return out, fmt.Errorf("cannot parse the states of relay agents: %w", err)
	}
	if a.Error != "" {
		out.Error = &a.Error
	}
	return out, nil
}

// RelayEnded implements server.Agents.
func (v view) RelayEnded(ctx context.Context, host, relay string) (out api.RelayEndedList, err error) {
	l := v.hub.link(host)
	if l == nil {
		return out, errNotConnected
	}
	a, err := query[*agents.RelayEndedAnswer](ctx, l, relaysTimeout, &agents.RelayEndedQuery{Relay: relay})
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(a.Connections, &out.Items); err != nil {
		return out, fmt.Errorf("cannot parse the connections of relay agent %s: %w", relay, err)
	}
	return out, nil
}

var errNotConnected = errors.New("the agent is not connected to this controller")
