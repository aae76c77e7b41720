package probing

import (
	"context"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// harmed are the paths on which a bystander sends a small packet every 2 ms, first without other
// traffic and then while "headgate probe path" runs.
var harmed = []struct {
	name string
	link link.Spec
}{
	{"link-1Gbit", link.Spec{}},
	{"shaper-200Mbit-100KB", link.Spec{Bucket: &link.Bucket{Rate: 200 * unit.Mbit, Size: 100_000}}},
	{"shaper-50Mbit-20KB", link.Spec{Bucket: &link.Bucket{Rate: 50 * unit.Mbit, Size: 20_000}}},
}

// pingEvery is the time between two packets of a bystander.
const pingEvery = 2 * time.Millisecond

func harmCases() (out []bench.Case) {
	for _, h := range harmed {
		id := "harm/" + h.name
		s := h.link
		s.Rate, s.Delay, s.Queue = unit.Gbit, 5*time.Millisecond, link.Amount{Time: 50 * time.Millisecond}
		out = append(out, bench.Case{
			Name: id,
			Claims: []bench.Claim{
				bench.NewClaim(id+"/delay", "p99 of a bystander's round-trip time, minus that without a probe", harmDelay, iperf3),
				bench.NewClaim(id+"/loss", "loss of a bystander", harmLoss, iperf3),
			},
			Takes: func(quick bool) time.Duration { return bench.Pick(quick, 9*time.Second, 50*time.Second) },
			Run: func(ctx context.Context, r *bench.Run) error {
				return withServer(ctx, twoHosts(s), func(on *stage) error { return on.harm(ctx, r, id) })
			},
		})
	}
	return out
}

// bystander is the result of a ping while something ran.
type bystander struct{ p99, loss float64 }

func (s *stage) beside(ctx context.Context, every time.Duration, do func() error) (b bystander, err error) {
	p, err := traffic.StartProbe(ctx, s.Host, traffic.Probe{Name: "bystander", From: client, To: server, Every: every})
	if err != nil {
		return b, err
	}
	done := do()
	r, err := p.Stop()
	if done != nil {
		return b, done
	}
	if err != nil {
		return b, err
	}
	return bystander{r.RTT.P99Us / 1e3, 100 * float64(r.Lost) / float64(r.Sent)}, nil
}

func (s *stage) harm(ctx context.Context, r *bench.Run, id string) error {
	alone, err := s.beside(ctx, pingEvery, func() error { time.Sleep(time.Second); return nil })
	if err != nil {
		return err
	}
	var delays, losses []float64
	for range bench.Pick(r.Quick, 1, 6) {
		b, err := s.beside(ctx, pingEvery, func() error { _, err := s.probe(ctx, "path"); return err })
		if err != nil {
			return err
		}
		delays, losses = append(delays, b.p99-alone.p99), append(losses, b.loss)
	}
	sheet := r.Sheet(bench.Ours)
	sheet.SetAll(id+"/delay", delays)
	sheet.SetAll(id+"/loss", losses)
	sheet.Note(id+"/delay", "%s ms without a probe", bench.Number(alone.p99))
	b, err := s.beside(ctx, pingEvery, func() error { return s.fill(ctx, bench.Pick(r.Quick, 1, 5)) })
	if err != nil {
		return err
	}
	r.Sheet(iperf3).Set(id+"/delay", b.p99-alone.p99)
	r.Sheet(iperf3).Set(id+"/loss", b.loss)
	return nil
}

// fill runs one TCP connection of iperf3.
func (s *stage) fill(ctx context.Context, seconds int) error {
	_, err := s.iperf(ctx, seconds)
	return err
}
