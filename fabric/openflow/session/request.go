package session

import (
	"context"
	"errors"
	"fmt"

	"headgate.dev/headgate/fabric/openflow"
)

// pending is a request that was not answered, or a list of changes of which the barrier was not.
type pending struct {
	answer chan answer // has room for one
	// changes has the errors of a list of changes: those whose xid is first or one of the count-1 after it. The barrier
	// has the number after them.
	changes *changes
}

type answer struct {
	message openflow.Message
	err     error
}

type changes struct {
	sent    []openflow.Message
	first   uint32
	refused []*Refused
}

// done passes on an answer. A switch that answers twice must not block the reader.
func (p *pending) done(a answer) {
	select {
	case p.answer <- a:
	default:
	}
}

func (p *pending) fail(err error) { p.done(answer{err: err}) }

// Refused is a message that the switch has refused.
type Refused struct {
	Message openflow.Message
	Reason  *openflow.Error
}

func (r *Refused) Error() string {
	return fmt.Sprintf("the switch refused %v: %s", r.Message, r.Reason.Name())
}

// Send sends messages whose errors, if there are any, go to Handle. It does not wait.
func (c *Conn) Send(messages ...openflow.Message) error {
	_, err := c.send(nil, messages...)
	return err
}

// send queues messages with successive xids, of which it returns the first. With p, what the switch answers goes to p.
func (c *Conn) send(p *pending, messages ...openflow.Message) (first uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return 0, c.closed
	}
	if c.xid > 1<<32-1-uint32(len(messages)) {
		c.xid = 0 // so that the xids of changes are successive
	}
	first = c.xid + 1
	begin := len(c.out.waiting)
	for n, m := range messages {
		xid := first + uint32(n)
		if c.out.waiting, err = openflow.Append(c.out.waiting, xid, m); err != nil {
			c.out.waiting = c.out.waiting[:begin]
			return 0, err
		}
		c.counters.sent(m.Type())
	}
	c.xid += uint32(len(messages))
	if p != nil {
		if p.changes != nil {
			p.changes.first = first
		}
		for n := range messages {
			c.pending[first+uint32(n)] = p
		}
	}
	if len(c.out.waiting) > maxQueued {
		go c.end(ErrSlow)
		return 0, ErrSlow
	}
	c.out.wake()
	return first, nil
}

// forget removes what waits for answers to some successive xids.
func (c *Conn) forget(first uint32, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range count {
		delete(c.pending, first+uint32(n))
		c.parts.Forget(first + uint32(n))
	}
}

// Request sends a message and returns the reply, which is whole if it has several parts. If the switch refuses the
// message, the error is a Refused.
func (c *Conn) Request(ctx context.Context, m openflow.Message) (openflow.Message, error) {
	p := &pending{answer: make(chan answer, 1)}
	xid, err := c.send(p, m)
	if err != nil {
		return nil, err
	}
	select {
	case a := <-p.answer:
		var reason *openflow.Error
		if errors.As(a.err, &reason) {
			return nil, &Refused{m, reason}
		}
		return a.message, a.err
	case <-ctx.Done():
		c.forget(xid, 1)
		return nil, fmt.Errorf("no answer to %v: %w", m.Type(), ctx.Err())
	}
}

// request is Request of a reply of one type.
func request[T openflow.Message](ctx context.Context, c *Conn, m openflow.Message) (reply T, err error) {
	answer, err := c.Request(ctx, m)
	if err != nil {
		return reply, err
	}
	reply, ok := answer.(T)
	if !ok {
		return reply, fmt.Errorf("the switch answered %v to %v", answer.Type(), m.Type())
	}
	return reply, nil
}

// multipart is Ask for a reply of any type.
func (c *Conn) multipart(ctx context.Context, body openflow.RequestBody) (openflow.ReplyBody, error) {
	reply, err := request[*openflow.MultipartReply](ctx, c, &openflow.MultipartRequest{Body: body})
	if err != nil {
		return nil, err
	}
	return reply.Body, nil
}

// Ask requests a description or statistics, and returns all parts of the reply, which is of type T.
func Ask[T openflow.ReplyBody](ctx context.Context, c *Conn, body openflow.RequestBody) (reply T, err error) {
	answer, err := c.multipart(ctx, body)
	if err != nil {
		return reply, err
	}
	reply, ok := answer.(T)
	if !ok {
		return reply, fmt.Errorf("the switch answered %v to a request for %v", answer.Kind(), body.Kind())
	}
	return reply, nil
}

// SetRole asks for a role, and returns the role in force. A switch that has seen a newer generation refuses with
// ErrRoleRequestFailed (section 6.3.6).
func (c *Conn) SetRole(ctx context.Context, role openflow.ControllerRole, generation uint64) (openflow.Role, error) {
	reply, err := request[*openflow.RoleReply](ctx, c, &openflow.RoleRequest{Role: openflow.Role{Role: role, GenerationID: generation}})
	if err != nil {
		return openflow.Role{}, err
	}
	return reply.Role, nil
}

// Apply sends changes, and returns when the switch has processed them all: it answers a barrier after them. The error
// joins one Refused for each change that it refuses; the others are in force.
func (c *Conn) Apply(ctx context.Context, messages ...openflow.Message) error {
	if len(messages) == 0 {
		return nil
	}
	of := &changes{sent: messages}
	p := &pending{answer: make(chan answer, 1), changes: of}
	all := append(messages[:len(messages):len(messages)], openflow.Message(&openflow.BarrierRequest{}))
	first, err := c.send(p, all...)
	if err != nil {
		return err
	}
	defer c.forget(first, len(all))
	select {
	case a := <-p.answer:
		if a.err != nil {
			return a.err
		}
	case <-ctx.Done():
		return fmt.Errorf("no answer to a barrier after %d changes: %w", len(messages), ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, r := range of.refused {
		errs = append(errs, r)
	}
	return errors.Join(errs...)
}

// AskThenApply requests statistics and sends changes right after it, without waiting between them: the statistics are those from just before
// the changes. The errors are that of the request and that of Apply, which do not depend on each other.
func AskThenApply[T openflow.ReplyBody](ctx context.Context, c *Conn, body openflow.RequestBody, messages ...openflow.Message) (reply T, asking, applying error) {
	m := &openflow.MultipartRequest{Body: body}
	p := &pending{answer: make(chan answer, 1)}
	xid, err := c.send(p, m)
	if err != nil {
		return reply, err, err
	}
	defer c.forget(xid, 1)
	applying = c.Apply(ctx, messages...)
	select { // it comes before the answer to the barrier
	case a := <-p.answer:
		if asking = a.err; asking != nil {
			return reply, asking, applying
		}
		parts, ok := a.message.(*openflow.MultipartReply)
		if ok {
			reply, ok = parts.Body.(T)
		}
		if !ok {
			asking = fmt.Errorf("the switch answered %v to %v", a.message.Type(), m.Type())
		}
	case <-ctx.Done():
		asking = fmt.Errorf("no answer to %v: %w", m.Type(), ctx.Err())
	}
	return reply, asking, applying
}
