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

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/train"
)

// RoundTrips measures the UDP round-trip time n times, with datagrams, as in the
// preliminary phase of the estimation seed (3.6.1). It returns mean and standard
// deviation of the round trips that were answered.
func (c *Client) RoundTrips(ctx context.Context, n int) (mean, deviation time.Duration, err error) {
	var took []float64
	for range n {
		begun := time.Now()
		if err := c.socket.SendHeader(train.Header{Kind: train.Hello, Session: c.id}, c.Peer); err != nil {
			return 0, 0, err
		}
		if at := c.awaitChallenge(ctx, 200*time.Millisecond); at > 0 {
			took = append(took, float64(at-begun.UnixNano()))
		}
		if ctx.Err() != nil {
			return 0, 0, context.Cause(ctx)
		}
	}
	if len(took) < 2 {
		return 0, 0, fmt.Errorf("cannot measure the round-trip time: of %d UDP requests to %s, %d were answered", n, c.Peer, len(took))
	}
	sum, squares := 0.0, 0.0
	for _, t := range took {
		sum += t
		squares += t * t
	}
	m := sum / float64(len(took))
	return time.Duration(m), time.Duration(math.Sqrt(max(squares/float64(len(took))-m*m, 0))), nil
}

// awaitChallenge waits for the server's answer to a Hello, and returns the kernel's receive
// timestamp, or 0 if no answer came.
func (c *Client) awaitChallenge(ctx context.Context, patience time.Duration) int64 {
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

// SendJoint has several servers send to one socket that their clients share. The trains meet
// there although the paths differ in length: roundTrips has the round-trip time of each
// server, and the farthest starts first.
func SendJoint(ctx context.Context, clients []*Client, roundTrips []time.Duration, j probe.Joint) (probe.JointSample, error) {
	if len(clients) != len(j.Trains) || len(clients) != len(roundTrips) {
		return probe.JointSample{}, errors.New("each sender needs one train and one round-trip time")
	}
	for _, c := range clients[1:] {
		if c.socket != clients[0].socket {
			return probe.JointSample{}, errors.New("clients of a joint measurement must share a socket")
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
			continue // this sender has no packets
		}
		all.Go(func() {
			time.Sleep(time.Until(start))
			parts[i], errs[i] = c.exchangeJoint(ctx, trains[i])
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return probe.JointSample{}, err
	}
	return merged(probe.Joint{Purpose: j.Purpose, Trains: trains, Start: j.Start}, parts), nil
}

// part is the result of one sender's train.
type part struct {
	sent     []int64
	received train.Received
}

// exchangeJoint exchanges one sender's train.
func (c *Client) exchangeJoint(ctx context.Context, t probe.Train) (out part, err error) {
	err = c.guarded(ctx, t, func() error {
		s, err := c.ask(t)
		if err != nil {
			return err
		}
		out.sent = s.At
		out.received, err = c.flow.Collect(ctx, c.trainNumber, t.Count())
		return err
	})
	return out, err
}

// merged sorts all arrivals into the order in which the socket returned them.
func merged(j probe.Joint, parts []part) probe.JointSample {
	s := probe.JointSample{Joint: j}
	type placed struct {
		trainRequest uint64
		probe.JointArrival
	}
	var all []placed
	for i, p := range parts {
		s.Sent = append(s.Sent, p.sent)
		for k, a := range p.received.Arrived {
			all = append(all, placed{p.received.Order[k], probe.JointArrival{From: i, Number: a.Number, At: a.At}})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.trainRequest, b.trainRequest) })
	for _, a := range all {
		s.Arrived = append(s.Arrived, a.JointArrival)
	}
	return s
}
