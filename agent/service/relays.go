package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/api/agents"
	relay "headgate.dev/headgate/relay/host"
)

// Limits of one answer to a controller. A page that watches a host causes an answer each second.
const (
	// maxRelays is the number of relay agents.
	maxRelays = 16
	// maxRelayConnections, maxRelayStreams and maxRelayEntries are numbers of a relay agent: those with the highest rates.
	maxRelayConnections, maxRelayStreams, maxRelayEntries = 200, 256, 64
	// relayTimeout is less than the time for which a controller waits, so that a relay agent that does not answer hides
	// no other.
	relayTimeout = 2 * time.Second
)

// relayStates answers a controller's query for the states of the relay agents that run on the host.
func relayStates(_ context.Context, _ *agents.RelaysQuery, answer func(*agents.RelaysAnswer)) error {
	states, failed := queryRelays()
	text, err := json.Marshal(states)
	if err == nil {
		answer(&agents.RelaysAnswer{States: text, Error: strings.Join(failed, "; ")})
	}
	return err
}

// queryRelays returns the states of the running relay agents, and why others did not report theirs. A relay agent
// that was killed has left its socket, and is not running.
func queryRelays() (states []relay.Status, failed []string) {
	type result struct {
		n     int
		state relay.Status
		err   error
	}
	names := relay.Running()
	results, all := make(chan result, len(names)), make([]result, len(names))
	for n, name := range names {
		all[n].err = errNoAnswer
		go func() {
			state, err := relay.QueryStatus(name)
			results <- result{n, state, err}
		}()
	}
	late := time.After(relayTimeout)
wait:
	for range names {
		select {
		case r := <-results:
			all[r.n] = r
		case <-late:
			break wait
		}
	}
	states = []relay.Status{}
	for n, r := range all {
		switch {
		case errors.Is(r.err, relay.ErrNotRunning):
		case r.err != nil:
			failed = append(failed, fmt.Sprintf("relay agent %s: %v", names[n], r.err))
		case len(states) == maxRelays:
			failed = append(failed, fmt.Sprintf("relay agent %s: left out, because more than %d are running", names[n], maxRelays))
		default:
			states = append(states, r.state.Bound(maxRelayConnections, maxRelayStreams, maxRelayEntries))
		}
	}
	return states, failed
}

var errNoAnswer = fmt.Errorf("no answer within %v", relayTimeout)

// relayEnded answers a controller's query for the connections of a relay agent that have ended.
func relayEnded(_ context.Context, q *agents.RelayEndedQuery, answer func(*agents.RelayEndedAnswer)) error {
	if !slices.Contains(relay.Running(), q.Relay) { // the name is part of the path of the socket
		return fmt.Errorf("relay agent %s is not running on this host", q.Relay)
	}
	ended, err := relay.QueryEnded(q.Relay)
	switch {
	case errors.Is(err, relay.ErrNotRunning):
		return fmt.Errorf("relay agent %s is not running on this host", q.Relay)
	case err != nil:
		slog.Warn("cannot query the relay agent", "relay", q.Relay, "error", err)
		return err
	}
	if ended == nil {
		ended = []relay.ConnectionStatus{}
	}
	text, err := json.Marshal(ended)
	if err == nil {
		answer(&agents.RelayEndedAnswer{Connections: text})
	}
	return err
}
