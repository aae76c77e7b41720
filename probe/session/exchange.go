package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/train"
	"headgate.dev/headgate/unit"
)

// Retries is how often a train with flaws is sent again, within the caps: a train of which a part cannot be used shows more than a
// session that ends. On a host with two processors, both in use, each train of 8 MB at 1.8 Gbit/s had flaws, and the third exceeded a cap of 20 MB.
const Retries = 2

// longPause is a silence before a train after which it is not sent again: it was for what the silence changes, as a bucket that fills.
const longPause = 200 * time.Millisecond

// A train measures its sender more than the path if it is late by more than maxLateness, and
// by more than the fraction maxStretch of its planned duration.
const (
	maxStretch  = 0.02
	maxLateness = 100 * time.Microsecond
)

// Send sends a train over the path in direction d. Packets are cut to the MTU of the
// path; the train in the sample has their real size.
func (c *Client) Send(ctx context.Context, d probe.Direction, t probe.Train) (s probe.Sample, err error) {
	again, arrived := unit.Bytes(0), unit.Bytes(0)
	for try := 0; ; try++ {
		s, err = c.exchange(ctx, d, t)
		s.Again, s.AgainArrived = again, arrived
		again += s.Bytes()
		if err != nil || len(s.Flaws) == 0 || try == Retries || t.Once || t.Parts[0].Pause > longPause || s.Bytes() > c.left(d) || c.budget > 0 && again+s.Bytes() > c.budget {
			return s, err
		}
		arrived += s.ArrivedBytes()
	}
}

// left returns the bytes that the caps leave for a direction.
func (c *Client) left(d probe.Direction) unit.Bytes {
	switch {
	case d == probe.In:
		return c.Caps.Bytes - min(c.data[1], c.Caps.Bytes)
	case c.remainingCaps != nil:
		return c.remainingCaps.caps.Bytes - c.remainingCaps.spent
	}
	return math.MaxInt64
}

// exchange sends a train once.
func (c *Client) exchange(ctx context.Context, d probe.Direction, t probe.Train) (s probe.Sample, err error) {
	t = c.fit(d, t)
	if c.remainingCaps != nil && d == probe.Out {
		if err := c.remainingCaps.await(ctx, t); err != nil {
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

// guarded gives a train the next number and calls do, which exchanges the train. An error
// ends the session, because the two ends may then disagree on the next message.
func (c *Client) guarded(ctx context.Context, t probe.Train, do func() error) error {
	if c.failed != nil {
		return c.failed
	}
	c.trainNumber++
	c.conn.SetDeadline(time.Now().Add(duration(t) + idleTimeout))
	stop := context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := do()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		c.failed = context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.failed = errors.New("server timed out: it does not respond")
	case errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET): // the write notices it
		c.failed = errors.New("server closed the connection")
	default:
		c.failed = err
	}
	return c.failed
}

// fit returns a copy of t with packets no larger than the MTU of the path.
func (c *Client) fit(d probe.Direction, t probe.Train) probe.Train {
	parts := make([]probe.Part, len(t.Parts))
	minSize := train.MinSize(c.Peer.Addr())
	for i, p := range t.Parts {
		p.Size = max(min(p.Size, c.MTU[d]), minSize)
		parts[i] = p
	}
	t.Parts, t.Apart = parts, t.Apart || c.apart[d]
	return t
}

// out sends a train to the server.
func (c *Client) out(ctx context.Context, t probe.Train) (probe.Sample, error) {
	sample := probe.Sample{Train: t}
	if err := c.l.write(message{Train: &trainRequest{Number: c.trainNumber, Train: t}}); err != nil {
		return sample, err
	}
	ends := train.Watch()
	left, err := c.flow.Send(ctx, c.trainNumber, t)
	if err != nil {
		return sample, err
	}
	c.data[0] += t.Bytes()
	sample.Sent, sample.StealTime.Sender = left.At, ends.Stolen()
	if err := c.l.write(message{Sent: &sent{Number: c.trainNumber}}); err != nil {
		return sample, err
	}
	m, err := c.read()
	if err != nil {
		return sample, err
	}
	a := m.Arrived
	if a == nil || a.Number != c.trainNumber || len(a.Packet) != len(a.At) {
		return sample, errors.New("unexpected message from the server: want \"arrived\" for the train")
	}
	for i, n := range a.Packet {
		if n < 0 || n >= int64(t.Count()) {
			return sample, fmt.Errorf("server reports arrival of packet %d, but the train has %d packets", n, t.Count())
		}
		sample.Arrived = append(sample.Arrived, probe.Arrival{Number: int(n), At: a.At[i]})
	}
	sample.Overflow, sample.StealTime.Receiver = a.Overflow, a.Stolen
	sample.Flaws = flaws(t, left.Delay, a.Stepped, a.Overflow)
	return sample, nil
}

// in has the server send a train to this end.
func (c *Client) in(ctx context.Context, t probe.Train) (probe.Sample, error) {
	sample := probe.Sample{Train: t}
	ends := train.Watch()
	left, err := c.ask(t)
	if err != nil {
		return sample, err
	}
	r, err := c.flow.Collect(ctx, c.trainNumber, t.Count())
	if err != nil {
		return sample, err
	}
	sample.Sent, sample.Arrived, sample.Overflow = left.At, r.Arrived, r.Overflow
	sample.StealTime = probe.StealTime{Sender: left.Stolen, Receiver: ends.Stolen()}
	sample.Flaws = flaws(t, left.Late, ends.Stepped(), r.Overflow)
	return sample, nil
}

// ask requests a train from the server and waits until the server has sent it.
func (c *Client) ask(t probe.Train) (*sent, error) {
	c.flow.Begin(c.trainNumber, t.Count())
	if err := c.l.write(message{Train: &trainRequest{Number: c.trainNumber, ToClient: true, Train: t}}); err != nil {
		return nil, err
	}
	m, err := c.read()
	if err != nil {
		return nil, err
	}
	if m.Sent == nil || m.Sent.Number != c.trainNumber || len(m.Sent.At) != t.Count() {
		return nil, errors.New("unexpected message from the server: want \"sent\" with the time of each packet")
	}
	c.data[1] += t.Bytes()
	return m.Sent, nil
}

// flaws describes the faults at the ends that affected a train.
func flaws(t probe.Train, late time.Duration, stepped bool, overflow int) (out []string) {
	if allowed := max(maxLateness, time.Duration(maxStretch*float64(duration(t)))); late > allowed {
		out = append(out, fmt.Sprintf("sender stalled for %v", late.Round(time.Microsecond)))
	}
	if stepped {
		out = append(out, "receiver clock was set during the train")
	}
	if overflow > 0 {
		out = append(out, fmt.Sprintf("receiver socket dropped %d packets", overflow))
	}
	return out
}
