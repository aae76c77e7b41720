package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"headgate/probe"
	"headgate/probe/train"
)

// RoundTrips measures the round trip n times, by UDP, for as long as trains are (the
// seed's preliminary phase, 3.6.1): the mean and the standard deviation of those that
// came back.
func (c *Client) RoundTrips(ctx context.Context, n int) (mean, deviation time.Duration, err error) {
	var took []float64
	for range n {
		begun := time.Now()
		if err := c.socket.Tell(train.Header{Kind: train.Hello, Session: c.id}, c.Peer); err != nil {
			return 0, 0, err
		}
		if at := c.challenged(ctx, 200*time.Millisecond); at > 0 {
			took = append(took, float64(at-begun.UnixNano()))
		}
		if ctx.Err() != nil {
			return 0, 0, context.Cause(ctx)
		}
	}
	if len(took) < 2 {
		return 0, 0, fmt.Errorf("of %d round trips by UDP to %s %d came back", n, c.Peer, len(took))
	}
	sum, squares := 0.0, 0.0
	for _, t := range took {
		sum += t
		squares += t * t
	}
	m := sum / float64(len(took))
	return time.Duration(m), time.Duration(math.Sqrt(max(squares/float64(len(took))-m*m, 0))), nil
}

// challenged waits for the server's answer to a Hello, and gives the kernel's stamp of
// it, or 0.
func (c *Client) challenged(ctx context.Context, patience time.Duration) int64 {
	t := time.NewTimer(patience)
	defer t.Stop()
	for {
		select {
		case h := <-c.socket.challenges:
			if h.Session == c.id {
				return h.At
			}
		case <-t.C:
			return 0
		case <-ctx.Done():
			return 0
		}
	}
}

// Race has several servers send to one socket, which their clients share, so that
// their trains meet there although their ways differ in length: roundTrips are what
// each takes, and the farthest begins.
func Race(ctx context.Context, clients []*Client, roundTrips []time.Duration, j probe.Joint) (probe.JointSample, error) {
	if len(clients) != len(j.Trains) || len(clients) != len(roundTrips) {
		return probe.JointSample{}, errors.New("each sender has one train and one round trip")
	}
	for _, c := range clients[1:] {
		if c.socket != clients[0].socket {
			return probe.JointSample{}, errors.New("clients that race share a socket")
		}
	}
	farthest := slices.Max(roundTrips)
	parts := make([]part, len(clients))
	errs := make([]error, len(clients))
	trains := make([]probe.Train, len(clients))
	begin := time.Now().Add(time.Millisecond)
	var all sync.WaitGroup
	for i, c := range clients {
		start := begin.Add(farthest - roundTrips[i])
		if i < len(j.Start) {
			start = start.Add(j.Start[i])
		}
		if trains[i] = c.fit(probe.In, j.Trains[i]); len(trains[i].Parts) == 0 {
			continue // it sends nothing this time
		}
		all.Go(func() {
			time.Sleep(time.Until(start))
			parts[i], errs[i] = c.racing(ctx, trains[i])
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return probe.JointSample{}, err
	}
	return merged(probe.Joint{Purpose: j.Purpose, Trains: trains, Start: j.Start}, parts), nil
}

// part is what came of one sender's train.
type part struct {
	sent     []int64
	received train.Received
}

// racing is one sender's part in a race.
func (c *Client) racing(ctx context.Context, t probe.Train) (out part, err error) {
	err = c.guarded(ctx, t, func() error {
		s, err := c.ask(t)
		if err != nil {
			return err
		}
		out.sent = s.At
		out.received, err = c.flow.Collect(ctx, c.number, t.Count())
		return err
	})
	return out, err
}

// merged puts all arrivals into the order in which the socket gave them.
func merged(j probe.Joint, parts []part) probe.JointSample {
	s := probe.JointSample{Joint: j}
	type placed struct {
		order uint64
		probe.JointArrival
	}
	var all []placed
	for i, p := range parts {
		s.Sent = append(s.Sent, p.sent)
		for k, a := range p.received.Arrived {
			all = append(all, placed{p.received.Order[k], probe.JointArrival{From: i, Number: a.Number, At: a.At}})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.order, b.order) })
	for _, a := range all {
		s.Arrived = append(s.Arrived, a.JointArrival)
	}
	return s
}
