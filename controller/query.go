package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"headgate.dev/headgate/api/agents"
)

// openQuery is a query that has not ended.
type openQuery struct {
	former  string                               // see formerID
	receive func(*agents.FromAgent) (ended bool) // must not block; called with the mutex of the link held
}

// begin numbers a query and returns the message to send. receive gets each answer, until it returns true or
// end is called.
func (l *link) begin(q proto.Message, receive func(*agents.FromAgent) (ended bool)) (m *agents.ToAgent, end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastQuery++
	number := l.lastQuery
	setFormerID(q, number)
	l.queries[number] = openQuery{formerID(q), receive}
	m = agents.To(q)
	m.Query = number
	return m, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.queries, number)
	}
}

// deliver passes an answer to its query, and reports whether the query is open. l.mu must be held.
func (l *link) deliver(m *agents.FromAgent) bool {
	number := m.Answer
	if id := formerID(agents.Carried(m)); number == 0 && id != "" {
		for n, q := range l.queries {
			if q.former == id {
				number = n
			}
		}
	}
	q, open := l.queries[number]
	if open && q.receive(m) {
		delete(l.queries, number)
	}
	return open
}

// query sends a query to an agent, and returns the first answer.
func query[A proto.Message](ctx context.Context, l *link, timeout time.Duration, q proto.Message) (a A, err error) {
	answers := make(chan *agents.FromAgent, 1)
	m, end := l.begin(q, func(m *agents.FromAgent) bool {
		answers <- m
		return true
	})
	defer end()
	late := time.NewTimer(timeout)
	defer late.Stop()
	out := l.out
	for {
		select {
		case out <- m:
			out = nil // the message is sent once
		case answer := <-answers:
			if answer.Error != "" {
				return a, errors.New(answer.Error)
			}
			a, ok := agents.Carried(answer).(A)
			if !ok {
				return a, fmt.Errorf("the agent of %s sent an answer of another type", l.host)
			}
			return a, nil
		case <-l.closed:
			return a, fmt.Errorf("the agent of %s disconnected", l.host)
		case <-late.C:
			return a, fmt.Errorf("the agent of %s did not answer in time", l.host)
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

// Agents of versions that do not know the numbers of queries repeat an identifier that is in each query
// and answer.

// formerID returns what identifies a query of such an agent, in the query and in its answers.
func formerID(m proto.Message) string {
	switch m := m.(type) {
	case *agents.UsageQuery:
		return fmt.Sprint("usage ", m.Id)
	case *agents.UsageAnswer:
		return fmt.Sprint("usage ", m.Id)
	case *agents.SetsQuery:
		return fmt.Sprint("sets ", m.Id)
	case *agents.SetsAnswer:
		return fmt.Sprint("sets ", m.Id)
	case *agents.ProbeQuery:
		return "probe " + m.Id
	case *agents.ProbeAnswer:
		return "probe " + m.Id
	case *agents.ProbeServe:
		return "serve " + m.Id
	case *agents.ProbeServing:
		return "serve " + m.Id
	}
	return ""
}

// setFormerID sets the identifier in a query that is identified by its number alone.
func setFormerID(q proto.Message, number uint64) {
	switch q := q.(type) {
	case *agents.UsageQuery:
		q.Id = number
	case *agents.SetsQuery:
		q.Id = number
	}
}
