package loop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// The budget of the relay and that of the others, of layer 2, and how many flows and streams have them.
const (
	relayBudget, otherBudget = 30 * unit.Mbit, 20 * unit.Mbit
	otherFlows, relayStreams = 20, 16
	// tcpPart is the part of layer 2 that segments of 1,448 bytes have.
	tcpPart = 1448. / 1514
)

var (
	within2   = bench.Target{Op: "<=", Value: 2, Unit: "%"}
	unchanged = bench.Target{Op: "<=", Value: 10, Unit: "%"}
)

// budgeted is a case of a network whose second path is too slow for either budget, so that both share the first.
type budgeted struct {
	id, what string
	design
}

var budgets = []budgeted{
	{"one-path", "both share one path of 55 Mbit/s, 10 ms of round-trip time", design{paths: [2]path{{55 * unit.Mbit, 5 * time.Millisecond, 0}, {10 * unit.Mbit, 5 * time.Millisecond, 0}}, streams: relayStreams / 2}},
	{"spare", "the path has 100 Mbit/s, so that both can borrow", design{paths: [2]path{{100 * unit.Mbit, 5 * time.Millisecond, 0}, {10 * unit.Mbit, 5 * time.Millisecond, 0}}, streams: relayStreams / 2}},
}

func budgetCases() (all []bench.Case) {
	for i, b := range budgets {
		id := "budget/" + b.id
		claims := []bench.Claim{
			bench.NewClaim(id+"/relay", "by how much less than its reservation of 30 Mbit/s the traffic of a relay with 16 streams gets: "+b.what, within2),
			bench.NewClaim(id+"/others", "by how much less than their reservation of 20 Mbit/s 20 greedy TCP flows get beside it", within2),
		}
		if i == 0 {
			claims = append(claims, bench.NewClaim(id+"/retransmissions", "by how much more the other flows send again than beside one UDP flow of the same 30 Mbit/s", unchanged))
		}
		all = append(all, bench.Case{Name: id, Run: b.run, Takes: bench.Takes(bench.Pick(i == 0, 60*time.Second, 0), 3*time.Minute), Claims: claims})
	}
	return all
}

func (b budgeted) run(ctx context.Context, r *bench.Run) (err error) {
	first := b.id == budgets[0].id
	if r.Quick && !r.Few && !first {
		return errFull
	}
	n, err := b.up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	e, err := listen(n.Node(server), netip.AddrPortFrom(n.addr[server], relayedPort))
	if err != nil {
		return err
	}
	defer e.listener.Close()
	if err := n.relay(ctx); err != nil {
		return err
	}
	if err := errors.Join(n.reserve(ctx, "streams", near, far, "tcp", "8424-8425", relayBudget, 2), n.reserve(ctx, "others", client, aside, "tcp", "6001-6020", otherBudget, 2)); err != nil {
		return err
	}
	length := bench.Pick(r.Quick, 12*time.Second, 60*time.Second)
	beside, err := n.beside(ctx, e, length, true)
	if err != nil {
		return err
	}
	id, sheet := "budget/"+b.id, r.Sheet(bench.Ours)
	less := func(got float64, promised unit.Rate) float64 { return max(0, 100*(1-got/float64(promised))) }
	sheet.Set(id+"/relay", less(beside.relay/tcpPart, relayBudget))
	sheet.Set(id+"/others", less(beside.others, otherBudget))
	sheet.Note(id+"/relay", "%v of payload", unit.Rate(beside.relay))
	sheet.Note(id+"/others", "%v of layer 2", unit.Rate(beside.others))
	if !first {
		return nil
	}
	if _, err := n.controller().Headgate(ctx, "reserve", "cancel", "streams"); err != nil {
		return err
	}
	if err := n.reserve(ctx, "plain", near, far, "udp", "6100", relayBudget, 2); err != nil {
		return err
	}
	plain, err := n.beside(ctx, e, length, false)
	if err != nil {
		return err
	}
	sheet.Set(id+"/retransmissions", 100*(float64(beside.again)/float64(max(1, plain.again))-1))
	sheet.Note(id+"/retransmissions", "%d segments, beside UDP %d", beside.again, plain.again)
	return nil
}

// shares is what the two got, in bit/s, and how many segments the others sent again.
type shares struct {
	relay, others float64
	again         uint64
}

// beside sends from the client over the relay, or UDP of its budget from the near agent's host without it, beside the others.
func (n *network) beside(ctx context.Context, e *echo, length time.Duration, relayed bool) (s shares, err error) {
	var flows []traffic.Flow
	for k := range otherFlows {
		flows = append(flows, traffic.Flow{Name: fmt.Sprint("other", k+1), From: client, To: aside, Protocol: traffic.TCP, Congestion: "cubic", DstPort: uint16(6001 + k), Schedule: traffic.Constant(relayBudget)})
	}
	if !relayed {
		flows = append(flows, traffic.Flow{Name: "plain", From: near, To: far, Protocol: traffic.UDP, DstPort: 6100, Schedule: traffic.Constant(relayBudget)})
	}
	session, err := traffic.Start(ctx, n.Host, flows, traffic.Options{Duration: length, Interval: time.Second})
	if err != nil {
		return s, err
	}
	if relayed {
		s.relay, err = bulk(ctx, n.Node(client), netip.AddrPortFrom(n.addr[server], relayedPort), e, length, length/4)
	}
	result := session.Wait()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return s, err
	}
	for k := range otherFlows {
		sum := result.Flow(fmt.Sprint("other", k+1)).Between(length/4, length)
		s.others, s.again = s.others+sum.DeliveredRate(), s.again+sum.Retransmits
	}
	return s, nil
}
