package lab

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// tcpCase is Reno over 50 ms with random loss, several connections in parallel, each in its own lab.
type tcpCase struct {
	name string
	loss float64
}

const (
	tcpRTT = 50 * time.Millisecond
	// minTimeout is Linux's minimum retransmission timeout on top of the RTT (TCP_RTO_MIN).
	minTimeout = 200 * time.Millisecond
)

func tcpCases() (out []bench.Case) {
	for _, c := range []tcpCase{{"0.1%", 1e-3}, {"1%", 1e-2}} {
		out = append(out, bench.Case{
			Name: c.id(), Run: c.run,
			Claims:    []bench.Claim{bench.NewClaim(c.id(), "Reno's goodput, deviation from the PFTK formula, median of the runs", formulaOff)},
			Takes:     func(quick bool) time.Duration { return c.settle(quick) + c.length(quick) + 2*time.Second },
			Alongside: func(bool) string { return "reno" },
		})
	}
	return out
}

func (c tcpCase) id() string { return "tcp/reno/50ms/" + c.name }

func (c tcpCase) runs(quick bool) int { return bench.Pick(quick, 3, 7) }

func (c tcpCase) settle(quick bool) time.Duration {
	return bench.Pick(quick, 3*time.Second, 10*time.Second)
}

func (c tcpCase) length(quick bool) time.Duration {
	return bench.Pick(quick, 12*time.Second, 120*time.Second)
}

func (c tcpCase) run(ctx context.Context, r *bench.Run) error {
	rates := make([]float64, c.runs(r.Quick))
	errs := make([]error, len(rates))
	var all sync.WaitGroup
	for i := range rates {
		all.Go(func() { rates[i], errs[i] = c.once(ctx, r.Quick, uint64(i+1)) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	// The window of Linux's Reno grows with the acknowledged data, not with the number of
	// acknowledgements (tcp_reno_cong_avoid): delayed ones do not slow it down, so b is 1.
	want := pftk(c.loss, tcpRTT, tcpRTT+minTimeout, 1) * segment * 8
	got := bench.Median(rates)
	sheet := r.Sheet(bench.Ours)
	sheet.Keep("goodput_bit_s", rates)
	sheet.Keep("formula_bit_s", want)
	sheet.Set(c.id(), 100*math.Abs(got/want-1))
	sheet.Note(c.id(), "%s Mbit/s of goodput, the formula predicts %s; %d runs of %v", bench.Number(got/1e6), bench.Number(want/1e6), len(rates), c.length(r.Quick))
	return nil
}

// segment is the payload of a full one.
const segment = 1448

// once returns one connection's goodput in bit/s.
func (c tcpCase) once(ctx context.Context, quick bool, seed uint64) (rate float64, err error) {
	path := lab.Path{Spec: link.Spec{Rate: unit.Gbit, Delay: tcpRTT / 2, Loss: link.Loss{Probability: c.loss}, Queue: link.Amount{Time: 200 * time.Millisecond}}}
	topology := pair(path, lab.Path{Spec: link.Spec{Delay: tcpRTT / 2}})
	topology.Links[0].Seed = seed
	settle, length := c.settle(quick), c.length(quick)
	err = with(ctx, topology, func(l *lab.Lab) error {
		flow := traffic.Flow{Name: "f", From: client, To: server, Protocol: traffic.TCP, Congestion: "reno", Schedule: traffic.Constant(traffic.Unlimited)}
		got, err := flowsAlone(ctx, l, []traffic.Flow{flow}, traffic.Options{Duration: settle + length})
		if err != nil {
			return err
		}
		part := got.Flow("f").Between(settle, settle+length)
		rate = float64(part.DeliveredBytes) * 8 / part.Seconds
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("run %d: %w", seed, err)
	}
	return rate, nil
}
