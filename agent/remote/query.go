package remote

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"headgate.dev/headgate/api/agents"
)

// Handler answers the queries of one type. Answer makes one.
type Handler struct {
	query protoreflect.FullName
	run   func(ctx context.Context, q proto.Message, answer func(proto.Message)) error
}

// Answer returns the handler of queries of type Q, a type of ToAgent, with answers of type A, a type of
// FromAgent. do passes its answers to answer, before it returns. The controller gets the error that do
// returns. ctx ends with the stream of the query. Queries are answered at the same time, each in a goroutine
// of its own.
func Answer[Q, A proto.Message](do func(ctx context.Context, q Q, answer func(A)) error) Handler {
	var q Q
	return Handler{q.ProtoReflect().Descriptor().FullName(), func(ctx context.Context, q proto.Message, answer func(proto.Message)) error {
		return do(ctx, q.(Q), func(a A) { answer(a) })
	}}
}

// OneAtATime returns a handler that answers a query after the one before.
func OneAtATime(h Handler) Handler {
	var answering sync.Mutex
	return Handler{h.query, func(ctx context.Context, q proto.Message, answer func(proto.Message)) error {
		answering.Lock()
		defer answering.Unlock()
		if ctx.Err() != nil {
			return nil
		}
		return h.run(ctx, q, answer)
	}}
}

// handler returns the handler of a query, nil if there is none.
func (l *Link) handler(q proto.Message) *Handler {
	for n := range l.Handlers {
		if q != nil && l.Handlers[n].query == q.ProtoReflect().Descriptor().FullName() {
			return &l.Handlers[n]
		}
	}
	return nil
}

// answer answers the query with a number, 0 from a controller of a version that does not number queries.
func (s *session) answer(ctx context.Context, number uint64, q proto.Message) {
	send := func(m *agents.FromAgent) {
		m.Answer = number
		select {
		case s.out <- m:
		case <-ctx.Done():
		}
	}
	err := fmt.Errorf("agent version %s does not support this query: upgrade the agent", s.Version)
	if h := s.handler(q); h != nil {
		err = h.run(ctx, q, func(a proto.Message) { send(agents.From(a)) })
	}
	if err != nil {
		send(&agents.FromAgent{Error: err.Error()})
	}
}
