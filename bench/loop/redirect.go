package loop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/unit"
)

var (
	noOther  = bench.Target{Op: "<=", Value: 0, Unit: "connections"}
	ms10     = bench.Target{Op: "<=", Value: 10, Unit: "ms"}
	part95   = bench.Target{Op: ">=", Value: 95, Unit: "%"}
	noneLeft = bench.Target{Op: "<=", Value: 0, Unit: "flows"}
	measured = bench.Target{Op: bench.Measured, Unit: "ms"}
)

// redirected is a case of two paths.
type redirected struct {
	id, what string
	design
}

var redirections = []redirected{
	{"near", "paths without delay", design{paths: [2]path{{100 * unit.Mbit, 0, 0}, {100 * unit.Mbit, 0, 0}}}},
	{"far", "paths of 20 and 30 ms of round-trip time", design{paths: [2]path{{50 * unit.Mbit, 10 * time.Millisecond, 0}, {50 * unit.Mbit, 15 * time.Millisecond, 0}}}},
	{"lossy", "paths of 20 and 60 ms that lose 0.1 %", design{paths: [2]path{{50 * unit.Mbit, 10 * time.Millisecond, 0.001}, {50 * unit.Mbit, 30 * time.Millisecond, 0.001}}}},
}

func redirectCases() (all []bench.Case) {
	for _, c := range redirections {
		id := "redirect/" + c.id
		all = append(all, bench.Case{
			Name: id, Run: c.run, Takes: bench.Takes(40*time.Second, 2*time.Minute+20*time.Second),
			Claims: []bench.Claim{
				bench.NewClaim(id+"/addresses", "redirected connections of which the client sees another address than the server's, or the server another than the client's: "+c.what, noOther),
				bench.NewClaim(id+"/first-byte", "median time from the beginning of a connection until the first byte comes back, above that of direct ones in the same network", ms10),
				bench.NewClaim(id+"/throughput", "rate of a redirected connection, of that by a listener of the near agent (forward) in turns with it", part95),
				bench.NewClaim(id+"/left", "flows of connections that switches have 3 s after the last one was closed", noneLeft),
			},
		})
	}
	return all
}

func (c redirected) run(ctx context.Context, r *bench.Run) (err error) {
	n, err := c.up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	to := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(n.addr[server], port) }
	servers := map[uint16]*echo{}
	for _, port := range []uint16{relayedPort, directPort} {
		if servers[port], err = listen(n.Node(server), to(port)); err != nil {
			return err
		}
		defer servers[port].listener.Close()
	}
	if err := n.relay(ctx); err != nil {
		return err
	}
	id := "redirect/" + c.id
	sheet := r.Sheet(bench.Ours)
	var times [2][]float64
	others := 0
	for range bench.Pick(r.Quick, 10, 100) {
		for i, port := range []uint16{relayedPort, directPort} {
			conn, took, err := ping(ctx, n.Node(client), to(port), 10*time.Second)
			if err != nil {
				return fmt.Errorf("a connection to port %d: %w", port, err)
			}
			times[i] = append(times[i], 1e3*took.Seconds())
			if port == relayedPort && (conn.RemoteAddr().String() != to(port).String() || !servers[port].saw(conn.LocalAddr().String())) {
				others++
			}
			conn.Close()
		}
	}
	state, err := n.controller().Show(ctx)
	if err != nil {
		return err
	}
	if state.Redirection == nil || int(state.Redirection.Redirected) < len(times[0]) {
		return fmt.Errorf("of %d connections were redirected: %+v", len(times[0]), state.Redirection)
	}
	sheet.Set(id+"/addresses", float64(others))
	sheet.Note(id+"/addresses", "of %d connections", len(times[0]))
	sheet.Set(id+"/first-byte", bench.Median(times[0])-bench.Median(times[1]))
	sheet.Note(id+"/first-byte", "%s ms, direct %s ms", bench.Number(bench.Median(times[0])), bench.Number(bench.Median(times[1])))
	var rates [2][]float64
	length := bench.Pick(r.Quick, 4*time.Second, 15*time.Second)
	for range bench.Pick(r.Quick, 1, 3) {
		for i, at := range []netip.AddrPort{to(relayedPort), netip.AddrPortFrom(n.addr[near], explicitPort)} {
			rate, err := bulk(ctx, n.Node(client), at, servers[relayedPort], length, length/3)
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], rate/1e6)
		}
	}
	sheet.Set(id+"/throughput", 100*bench.Median(rates[0])/bench.Median(rates[1]))
	sheet.Note(id+"/throughput", "%s Mbit/s of payload, explicit %s Mbit/s", bench.Number(bench.Median(rates[0])), bench.Number(bench.Median(rates[1])))
	if err := bench.Sleep(ctx, 3*time.Second); err != nil {
		return err
	}
	left, err := n.flows(ctx)
	if err != nil {
		return err
	}
	sheet.Set(id+"/left", float64(left))
	return nil
}
