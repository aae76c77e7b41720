package controller

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/store"
)

// Bounds of one agent, chosen for Headgate: its host may be in wrong hands.
const (
	// maxAgentMessage is the largest message of an agent, in bytes: the usage record of a week is some MB. maxAgentStreams are the streams of a connection:
	// Connect, and a Renew.
	maxAgentMessage, maxAgentStreams = 16 << 20, 4
	// helloTimeout is how long an agent may take for its first message.
	helloTimeout = 10 * time.Second
	// maxRetained is the size of a message that the controller keeps, in bytes: facts, what is in force, and the counters of a report. 16,000 groups have 3 MB.
	maxRetained = 4 << 20
	// agentBytes is how many bytes a second an agent may send, and agentBurst how many at once: the report of 16,000 groups is 1 MB, ten times a second
	// while a client watches. What is above waits in the agent's host.
	agentBytes, agentBurst = 16 << 20, maxAgentMessage
	// agentMessages is how many messages a second an agent may send, and agentMessageBurst how many at once.
	agentMessages, agentMessageBurst = 100, 200
	// renewals is how often an agent may renew its certificate, and renewalBurst how often at once.
	renewals, renewalBurst = rate.Limit(1.0 / 60), 5
	// excessEvery is how often an event names an agent that exceeds a bound.
	excessEvery = 10 * time.Minute
)

// allowance is what an agent may still do. It outlives the streams of the agent.
type allowance struct {
	bytes, messages, renewals *rate.Limiter

	mu     sync.Mutex
	warned map[string]time.Time // last event, by the bound
}

func newAllowance() *allowance {
	return &allowance{
		bytes: rate.NewLimiter(agentBytes, agentBurst), messages: rate.NewLimiter(agentMessages, agentMessageBurst), renewals: rate.NewLimiter(renewals, renewalBurst),
		warned: map[string]time.Time{},
	}
}

// allowance returns that of a host.
func (h *hub) allowance(host string) *allowance {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.allowances[host]
	if a == nil {
		a = newAllowance()
		h.allowances[host] = a
	}
	return a
}

// receiveHello returns the first message of a stream.
func receiveHello(stream agents.Agents_ConnectServer) (*agents.Hello, error) {
	type received struct {
		m   *agents.FromAgent
		err error
	}
	got := make(chan received, 1)
	go func() { // ends with the stream
		m, err := stream.Recv()
		got <- received{m, err}
	}()
	select {
	case first := <-got:
		if first.err != nil {
			return nil, first.err
		}
		if hello := first.m.GetHello(); hello != nil {
			return hello, nil
		}
		return nil, status.Error(codes.InvalidArgument, "the first message of a stream must be hello")
	case <-time.After(helloTimeout):
		return nil, status.Errorf(codes.DeadlineExceeded, "no hello within %v", helloTimeout)
	}
}

// admit waits until an agent may have sent a message, and refuses one that is too large to be kept.
func (h *hub) admit(ctx context.Context, host string, a *allowance, m *agents.FromAgent) error {
	size := proto.Size(m)
	for _, bound := range []struct {
		what  string
		of    *rate.Limiter
		takes int
	}{
		{fmt.Sprintf("more than %d messages a second", agentMessages), a.messages, 1},
		{fmt.Sprintf("more than %d MiB a second", agentBytes>>20), a.bytes, min(size, agentBurst)},
	} {
		if bound.of.Tokens() < float64(bound.takes) {
			h.excess(host, a, bound.what)
		}
		if err := bound.of.WaitN(ctx, bound.takes); err != nil {
			return err
		}
	}
	switch m.Message.(type) {
	case *agents.FromAgent_Facts, *agents.FromAgent_Enforced, *agents.FromAgent_ReservationsEnforced, *agents.FromAgent_Report, *agents.FromAgent_ReservationReport:
		if size > maxRetained {
			h.excess(host, a, fmt.Sprintf("a message of %d bytes, of which at most %d are kept", size, maxRetained))
			return status.Errorf(codes.InvalidArgument, "the message has %d bytes, and at most %d are accepted", size, maxRetained)
		}
	}
	return nil
}

// excess logs that an agent exceeds a bound, and makes an event of it.
func (h *hub) excess(host string, a *allowance, what string) {
	now := time.Now()
	a.mu.Lock()
	again := now.Sub(a.warned[what]) < excessEvery
	if !again {
		a.warned[what] = now
	}
	if len(a.warned) > 10 {
		a.warned = map[string]time.Time{what: now}
	}
	a.mu.Unlock()
	if again {
		return
	}
	slog.Warn("agent exceeds a bound: its host may be in wrong hands", "host", host, "sends", what)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), excessTimeout)
		defer cancel()
		id := fmt.Sprintf("%016x-%s", now.UnixNano(), rand.Text()[:8])
		entry := store.AuditEntry{ID: id, At: now.UTC(), By: host, Role: store.Agent, Change: "agent sends " + what, Resource: "hosts/" + host, Status: 429}
		if _, err := h.store.Do(ctx, store.Prefix(store.Audit)+"excess", func(tx *store.Tx) error { return tx.Put(store.Key(store.Audit, id), entry) }); err != nil {
			slog.Warn("cannot record that an agent exceeds a bound", "host", host, "error", err)
		}
	}()
}

// excessTimeout is how long the record of an excess may take.
const excessTimeout = 10 * time.Second
