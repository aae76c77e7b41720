package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"headgate.dev/headgate/fabric/openflow"
)

// pending is a request that was not answered, or a barrier.
type pending struct {
	answer chan answer  // has room for one
	call   func(answer) // in place of answer: it is called once, with Conn.mu held
	into   openflow.ReplyBody
}

type answer struct {
	message openflow.Message
	err     error
}

// changes is a list of changes of which the barrier was not answered. They have the xids from first on, and the barrier has the one after them. There is
// no entry in a map for each of them: a map keeps the room of the most entries that it has had.
type changes struct {
	sent    []openflow.Message
	first   uint32
	refused []error // a Refused each
}

// number returns which of the changes has an xid.
func (l *changes) number(xid uint32) (n int, ok bool) {
	n = int(xid - l.first)
	return n, n < len(l.sent)
}

// barrier is the xid of the barrier after the changes.
func (l *changes) barrier() uint32 { return l.first + uint32(len(l.sent)) }

// done passes on an answer. A switch that answers twice must not block the reader.
func (p *pending) done(a answer) {
	if call := p.call; call != nil {
		p.call = nil
		call(a)
	}
	select {
	case p.answer <- a:
	default:
	}
}

// to returns the reply to a request, or a Refused or another error.
func (a answer) to(request openflow.Message) (openflow.Message, error) {
	var reason *openflow.Error
	if errors.As(a.err, &reason) {
		return nil, &Refused{request, reason}
	}
	return a.message, a.err
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
	if first, err = c.post(p, messages...); err == nil {
		c.out.wake()
	}
	return first, err
}

// post is send without waking the writer. The caller holds c.mu.
func (c *Conn) post(p *pending, messages ...openflow.Message) (first uint32, err error) {
	if c.closed != nil {
		return 0, c.closed
	}
	first = c.xids(len(messages))
	begin := len(c.out.waiting)
	for n, m := range messages {
		if err := c.queue(first+uint32(n), m); err != nil {
			c.out.waiting = c.out.waiting[:begin]
			return 0, err
		}
	}
	if len(c.out.waiting) > maxQueued {
		go c.end(ErrSlow)
		return 0, ErrSlow
	}
	if p != nil {
		for n := range messages {
			c.pending[first+uint32(n)] = p
		}
	}
	return first, nil
}

// xids returns the first of some successive xids for messages. The caller holds c.mu.
func (c *Conn) xids(count int) uint32 {
	if c.xid > 1<<32-1-uint32(count) {
		c.xid = 0
	}
	first := c.xid + 1
	c.xid += uint32(count)
	return first
}

// queue appends a message to what waits to be written. The caller holds c.mu.
func (c *Conn) queue(xid uint32, m openflow.Message) error {
	b, err := openflow.Append(c.out.waiting, xid, m)
	if err != nil {
		return err
	}
	c.out.waiting = b
	c.counters.sent(m.Type())
	return nil
}

// forget removes what waits for an answer.
func (c *Conn) forget(xid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(xid)
}

// drop is forget of a caller that holds c.mu.
func (c *Conn) drop(xid uint32) {
	delete(c.pending, xid)
	c.parts.Forget(xid)
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
		return a.to(m)
	case <-ctx.Done():
		c.forget(xid)
		return nil, fmt.Errorf("no answer to %v: %w", m.Type(), ctx.Err())
	}
}

// request is Request of a reply of one type.
func request[T openflow.Message](ctx context.Context, c *Conn, m openflow.Message) (reply T, err error) {
	answer, err := c.Request(ctx, m)
	if err != nil {
		return reply, err
	}
	return replyOf[T](answer, m)
}

// replyOf returns an answer to a request as the type that it must have.
func replyOf[T openflow.Message](answer, request openflow.Message) (reply T, err error) {
	reply, ok := answer.(T)
	if !ok {
		return reply, fmt.Errorf("the switch answered %v to %v", answer.Type(), request.Type())
	}
	return reply, nil
}

// bodyOf returns the body of a reply as the type that it must have.
func bodyOf[T openflow.ReplyBody](answer openflow.ReplyBody, request openflow.RequestBody) (reply T, err error) {
	reply, ok := answer.(T)
	if !ok {
		return reply, fmt.Errorf("the switch answered %v to a request for %v", answer.Kind(), request.Kind())
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
	return bodyOf[T](answer, body)
}

// Start requests a description or statistics, and does not wait: done is called once with all parts of the reply, which is of type T, or an error. It
// must return soon and not use the session, whose reader calls it. into is an earlier reply, in whose memory this one may be, or nil. After forget, which
// reports whether there was no answer yet, it is not called any more. No goroutine waits for the answer, and the request is written at once if nothing waits before it: with Ask a thousand switches that answer one
// by one woke three goroutines each, and a processor for most of them.
func Start[T openflow.ReplyBody](c *Conn, body openflow.RequestBody, into openflow.ReplyBody, done func(reply T, err error)) (forget func() bool, err error) {
	m := &openflow.MultipartRequest{Body: body}
	p := &pending{into: into, call: func(a answer) {
		var reply T
		message, err := a.to(m)
		if err == nil {
			var parts *openflow.MultipartReply
			if parts, err = replyOf[*openflow.MultipartReply](message, m); err == nil {
				reply, err = bodyOf[T](parts.Body, body)
			}
		}
		done(reply, err)
	}}
	c.mu.Lock()
	defer c.mu.Unlock()
	xid, err := c.post(p, m)
	if err != nil {
		return nil, err
	}
	c.flush()
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p.call == nil {
			return false
		}
		p.call = nil
		c.drop(xid)
		return true
	}, nil
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

// Apply sends changes, as fast as the switch reads them, and returns when it has processed them all: it answers a barrier after them. The error
// joins one Refused for each change that it refuses; the others are in force. If one cannot be encoded, those before it are in force.
func (c *Conn) Apply(ctx context.Context, messages ...openflow.Message) error {
	if len(messages) == 0 {
		return nil
	}
	return c.apply(ctx, nil, messages)
}

// question is a request that is sent right before changes.
type question struct {
	message openflow.Message
	*pending
	xid uint32 // 0 if it was not sent
}

// apply is Apply after a question, if there is one.
func (c *Conn) apply(ctx context.Context, q *question, messages []openflow.Message) error {
	l, barrier, err := c.sendChanges(ctx, q, messages)
	if err != nil {
		return err
	}
	defer c.applied(l)
	select {
	case a := <-barrier.answer:
		if a.err != nil {
			return a.err
		}
	case <-ctx.Done():
		return fmt.Errorf("no answer to a barrier after %d changes: %w", len(messages), ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(l.refused...)
}

// sendChanges queues changes and a barrier. With an error there is no answer to a barrier to wait for.
func (c *Conn) sendChanges(ctx context.Context, q *question, messages []openflow.Message) (l *changes, barrier *pending, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return nil, nil, c.closed
	}
	if q != nil {
		xid := c.xids(1)
		if err := c.queue(xid, q.message); err != nil {
			return nil, nil, err
		}
		q.xid, c.pending[xid] = xid, q.pending
	}
	sent := &changes{sent: messages, first: c.xids(len(messages) + 1)}
	c.applying = append(c.applying, sent)
	defer func() {
		if err != nil {
			c.remove(sent)
		}
	}()
	for n, m := range messages {
		if err := c.queue(sent.first+uint32(n), m); err != nil {
			return nil, nil, err
		}
		if len(c.out.waiting) > batch {
			c.out.wake()
			c.out.awaitRoom(ctx)
			if err := cmp.Or(c.closed, ctx.Err()); err != nil {
				return nil, nil, fmt.Errorf("the switch has read fewer than %d of %d changes: %w", n+1, len(messages), err)
			}
		}
	}
	if err := c.queue(sent.barrier(), &openflow.BarrierRequest{}); err != nil {
		return nil, nil, err
	}
	barrier = &pending{answer: make(chan answer, 1)}
	c.pending[sent.barrier()] = barrier
	c.flush()
	return sent, barrier, nil
}

// applied forgets changes that are made, or given up.
func (c *Conn) applied(l *changes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(l)
	delete(c.pending, l.barrier())
}

// remove removes changes from those that are awaited. The caller holds c.mu.
func (c *Conn) remove(l *changes) {
	c.applying = slices.DeleteFunc(c.applying, func(other *changes) bool { return other == l })
}

// AskThenApply requests statistics and sends changes right after it, without waiting between them: the statistics are those from just before
// the changes. The errors are that of the request and that of Apply, which do not depend on each other.
func AskThenApply[T openflow.ReplyBody](ctx context.Context, c *Conn, body openflow.RequestBody, messages ...openflow.Message) (reply T, asking, applying error) {
	if len(messages) == 0 {
		reply, asking = Ask[T](ctx, c, body)
		return reply, asking, nil
	}
	q := &question{message: &openflow.MultipartRequest{Body: body}, pending: &pending{answer: make(chan answer, 1)}}
	applying = c.apply(ctx, q, messages)
	if q.xid == 0 {
		return reply, applying, applying
	}
	defer c.forget(q.xid)
	select { // it comes before the answer to the barrier
	case a := <-q.answer:
		if asking = a.err; asking != nil {
			return reply, asking, applying
		}
		parts, ok := a.message.(*openflow.MultipartReply)
		if ok {
			reply, ok = parts.Body.(T)
		}
		if !ok {
			asking = fmt.Errorf("the switch answered %v to %v", a.message.Type(), openflow.TypeMultipartRequest)
		}
	case <-ctx.Done():
		asking = fmt.Errorf("no answer to %v: %w", openflow.TypeMultipartRequest, ctx.Err())
	}
	return reply, asking, applying
}
