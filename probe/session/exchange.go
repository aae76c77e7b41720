package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"headgate/probe"
	"headgate/probe/train"
)

// Retries is how often a train is sent again because of what an end did to it.
const Retries = 2

// tolerated is how much longer than it should have been a train may take, before it
// says more of its sender than of the path: a part of it, or so much.
const (
	tolerated    = 0.02
	toleratedFor = 100 * time.Microsecond
)

// Send has a train cross the path in a direction. Packets are no larger than the
// path's MTU: the sample's train says how large they were.
func (c *Client) Send(ctx context.Context, d probe.Direction, t probe.Train) (s probe.Sample, err error) {
	for try := 0; ; try++ {
		s, err = c.exchange(ctx, d, t)
		if err != nil || len(s.Flaws) == 0 || try == Retries {
			return s, err
		}
	}
}

// exchange is one try.
func (c *Client) exchange(ctx context.Context, d probe.Direction, t probe.Train) (s probe.Sample, err error) {
	t = c.fit(d, t)
	if c.left != nil && d == probe.Out {
		if err := c.left.await(ctx, t); err != nil {
			return probe.Sample{}, err
		}
	}
	try := c.out
	if d == probe.In {
		try = c.in
	}
	err = c.guarded(ctx, t, func() error {
		s, err = try(ctx, t)
		return err
	})
	return s, err
}

// guarded does what exchanges a train, which gets the next number. What goes wrong
// ends the session: the two ends may not agree any more on what comes next.
func (c *Client) guarded(ctx context.Context, t probe.Train, do func() error) error {
	if c.broken != nil {
		return c.broken
	}
	c.number++
	c.conn.SetDeadline(time.Now().Add(duration(t) + silence))
	stop := context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := do()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		c.broken = context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.broken = errors.New("the server has vanished: it does not answer any more")
	case errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET): // it is noticed as we write
		c.broken = errors.New("the server closed the connection")
	default:
		c.broken = err
	}
	return c.broken
}

// fit makes packets no larger than the path's MTU, on a copy.
func (c *Client) fit(d probe.Direction, t probe.Train) probe.Train {
	parts := make([]probe.Part, len(t.Parts))
	least := train.Least(c.Peer.Addr())
	for i, p := range t.Parts {
		p.Size = max(min(p.Size, c.MTU[d]), least)
		parts[i] = p
	}
	t.Parts = parts
	return t
}

// out sends a train to the server.
func (c *Client) out(ctx context.Context, t probe.Train) (probe.Sample, error) {
	sample := probe.Sample{Train: t}
	if err := c.l.write(message{Train: &order{Number: c.number, Train: t}}); err != nil {
		return sample, err
	}
	ends := train.Watch()
	left, err := c.flow.Send(ctx, c.number, t)
	if err != nil {
		return sample, err
	}
	c.data[0] += t.Bytes()
	sample.Sent, sample.Stolen.Sender = left.At, ends.Stolen()
	if err := c.l.write(message{Sent: &sent{Number: c.number}}); err != nil {
		return sample, err
	}
	m, err := c.read()
	if err != nil {
		return sample, err
	}
	a := m.Arrived
	if a == nil || a.Number != c.number || len(a.Packet) != len(a.At) {
		return sample, errors.New("the server said something else than what came of a train")
	}
	for i, n := range a.Packet {
		if n < 0 || n >= int64(t.Count()) {
			return sample, fmt.Errorf("the server tells of packet %d of %d", n, t.Count())
		}
		sample.Arrived = append(sample.Arrived, probe.Arrival{Number: int(n), At: a.At[i]})
	}
	sample.Overflow, sample.Stolen.Receiver = a.Overflow, a.Stolen
	sample.Flaws = flaws(t, left.Late, a.Stepped, a.Overflow)
	return sample, nil
}

// in has the server send one.
func (c *Client) in(ctx context.Context, t probe.Train) (probe.Sample, error) {
	sample := probe.Sample{Train: t}
	ends := train.Watch()
	left, err := c.ask(t)
	if err != nil {
		return sample, err
	}
	r, err := c.flow.Collect(ctx, c.number, t.Count())
	if err != nil {
		return sample, err
	}
	sample.Sent, sample.Arrived, sample.Overflow = left.At, r.Arrived, r.Overflow
	sample.Stolen = probe.Stolen{Sender: left.Stolen, Receiver: ends.Stolen()}
	sample.Flaws = flaws(t, left.Late, ends.Stepped(), r.Overflow)
	return sample, nil
}

// ask has the server send a train, and waits until it has.
func (c *Client) ask(t probe.Train) (*sent, error) {
	c.flow.Expect(c.number, t.Count())
	if err := c.l.write(message{Train: &order{Number: c.number, ToClient: true, Train: t}}); err != nil {
		return nil, err
	}
	m, err := c.read()
	if err != nil {
		return nil, err
	}
	if m.Sent == nil || m.Sent.Number != c.number || len(m.Sent.At) != t.Count() {
		return nil, errors.New("the server said something else than when a train's packets left")
	}
	c.data[1] += t.Bytes()
	return m.Sent, nil
}

// flaws are what the ends did to a train.
func flaws(t probe.Train, late time.Duration, stepped bool, overflow int) (out []string) {
	if allowed := max(toleratedFor, time.Duration(tolerated*float64(duration(t)))); late > allowed {
		out = append(out, fmt.Sprintf("its sender stood still for %v", late.Round(time.Microsecond)))
	}
	if stepped {
		out = append(out, "the receiver's clock was set meanwhile")
	}
	if overflow > 0 {
		out = append(out, fmt.Sprintf("the receiver's socket dropped %d packets", overflow))
	}
	return out
}
