package loop

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/unit"
)

var (
	ms1     = bench.Target{Op: "<=", Value: 1, Unit: "ms"}
	refused = bench.Target{Op: "<=", Value: 0, Unit: "connections"}
	half    = bench.Target{Op: "<=", Value: 0.5, Unit: "cores"}
)

func manyCases() []bench.Case {
	return []bench.Case{{
		Name: "many", Run: many, Takes: bench.Takes(30*time.Second, 50*time.Second),
		Claims: []bench.Claim{
			bench.NewClaim("many/others", "median time until a connection is open that matches a rule and that no agent carries, to a server at the client's switch, above that without agents: with 2,000 new connections a second, a tenth of which is redirected", ms1),
			bench.NewClaim("many/refused", "connections that were not open after 3 s, or did not answer", refused),
			bench.NewClaim("many/controller", "processors of the controller meanwhile", half),
			bench.NewClaim("many/redirected", "median time until the first byte comes back of those that are redirected", measured),
		},
	}}
}

// opened is what became of connections.
type opened struct {
	mu      sync.Mutex
	times   []float64 // until they were open, in ms
	answers []float64 // until the first byte came back
	failed  int
	first   error
}

// open opens connections from the client, so many a second, for a time, and each is closed after its first byte.
func (n *network) open(ctx context.Context, to netip.AddrPort, rate int, length time.Duration) *opened {
	o := &opened{}
	var all sync.WaitGroup
	every := time.Second / time.Duration(rate)
	_ = n.Node(client).Do(func() error {
		began := time.Now()
		for i := 0; time.Since(began) < length && ctx.Err() == nil; i++ {
			time.Sleep(time.Until(began.Add(time.Duration(i) * every)))
			at := time.Now()
			c, err := begin(to)
			all.Go(func() { o.add(ctx, c, at, err) })
		}
		return nil
	})
	all.Wait()
	return o
}

// add waits until a connection that began is open and has answered, or failed.
func (o *opened) add(ctx context.Context, c *net.TCPConn, at time.Time, err error) {
	if err == nil {
		err = open(ctx, c, 3*time.Second)
	}
	took := time.Since(at)
	if err == nil {
		err = again(c, 3*time.Second)
		_ = c.SetLinger(0) // its port is free at once
	}
	if c != nil {
		c.Close()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.failed++
		if o.first == nil {
			o.first = err
		}
		return
	}
	o.times, o.answers = append(o.times, 1e3*took.Seconds()), append(o.answers, 1e3*time.Since(at).Seconds())
}

func many(ctx context.Context, r *bench.Run) (err error) {
	n, err := design{paths: [2]path{{500 * unit.Mbit, 0, 0}, {500 * unit.Mbit, 0, 0}}, aside: "s1"}.up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	to := func(name string) netip.AddrPort { return netip.AddrPortFrom(n.addr[name], relayedPort) }
	for _, name := range []string{server, aside} {
		e, err := listen(n.Node(name), to(name))
		if err != nil {
			return err
		}
		defer e.listener.Close()
	}
	length := bench.Pick(r.Quick, 3*time.Second, 10*time.Second)
	const redirectedRate, otherRate = 200, 1800
	without := n.open(ctx, to(aside), otherRate+redirectedRate, length)
	if err := n.relay(ctx); err != nil {
		return err
	}
	var others, carried *opened
	cores, err := n.controller().Cores(func() error {
		var both sync.WaitGroup
		both.Go(func() { others = n.open(ctx, to(aside), otherRate, length) })
		both.Go(func() { carried = n.open(ctx, to(server), redirectedRate, length) })
		both.Wait()
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	state, err := n.controller().Show(ctx)
	if err != nil {
		return err
	}
	if len(without.times) == 0 || len(others.times) == 0 || len(carried.answers) == 0 {
		return errors.Join(errors.New("no connection was open"), without.first, others.first, carried.first)
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set("many/others", bench.Median(others.times)-bench.Median(without.times))
	sheet.Note("many/others", "%s ms, without agents %s ms; the slowest of a hundred %s and %s ms", bench.Number(bench.Median(others.times)), bench.Number(bench.Median(without.times)), bench.Number(percentile(others.times, 99)), bench.Number(percentile(without.times, 99)))
	sheet.Set("many/refused", float64(others.failed+carried.failed))
	sheet.Note("many/refused", "of %d; without agents %d of %d", len(others.times)+others.failed+len(carried.times)+carried.failed, without.failed, len(without.times)+without.failed)
	for _, problem := range []error{others.first, carried.first} {
		if problem != nil {
			sheet.Note("many/refused", "%v", problem)
		}
	}
	sheet.Set("many/controller", cores)
	if c := state.Redirection; c != nil {
		sheet.Note("many/controller", "asked %d times, redirected %d, direct %d", c.Asked, c.Redirected, c.Direct)
	}
	sheet.Set("many/redirected", bench.Median(carried.answers))
	return nil
}

// percentile returns a percentile of values, of which there is at least one.
func percentile(values []float64, p int) float64 {
	all := slices.Sorted(slices.Values(values))
	return all[min(len(all)*p/100, len(all)-1)]
}
