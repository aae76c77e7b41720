package lab

import (
	"context"
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// lossCase sends small datagrams, which leave the sender in super-packets (UDP GSO), over a link with
// losses.
type lossCase struct {
	name     string
	loss     link.Loss
	segments float64 // in a full run
	drawn    string
}

// datagram is the payload of each; with headers 64 + 42 bytes of layer 2.
const (
	datagram      = 64
	datagramFrame = datagram + 42
)

func lossCases(d *bench.Draw) (out []bench.Case) {
	cases := []lossCase{
		{name: "0.01%", loss: link.Loss{Probability: 1e-4}, segments: 1e7},
		{name: "0.1%", loss: link.Loss{Probability: 1e-3}, segments: 1e6},
		{name: "1%", loss: link.Loss{Probability: 1e-2}, segments: 1e6},
	}
	v := d.For("loss/drawn-1")
	p := math.Round(v.Log(5e-4, 5e-2)*1e5) / 1e5
	cases = append(cases, lossCase{name: "drawn-1", loss: link.Loss{Probability: p}, segments: 1e6, drawn: fmt.Sprintf("%.3f %% of 10^6 segments", 100*p)})
	for _, c := range cases {
		out = append(out, bench.Case{
			Name: c.id(), Claims: []bench.Claim{bench.NewClaim(c.id(), "missing segments at the receiver, deviation from the expected number", lossSigmas)},
			Run: c.run, Drawn: c.drawn, Alongside: together("loss"),
			Takes: func(quick bool) time.Duration { return c.length(quick) + time.Second },
		})
	}
	return out
}

func (c lossCase) id() string { return "loss/" + c.name }

// perSecond is well below what the receiver's socket can take; in a smoke run the cases share the
// machine.
func perSecond(quick bool) float64 { return bench.Pick(quick, 25_000.0, 100_000.0) }

func (c lossCase) length(quick bool) time.Duration {
	return bench.Pick(quick, 4*time.Second, time.Duration(c.segments/perSecond(quick)*1e9))
}

func (c lossCase) run(ctx context.Context, r *bench.Run) error {
	forward := lab.Path{Spec: link.Spec{Loss: c.loss, Delay: time.Millisecond}}
	topology := pair(forward, lab.Path{})
	topology.Links[0].Seed = 0 // a new seed for each run
	return with(ctx, topology, func(l *lab.Lab) error {
		flow := traffic.Flow{
			Name: "f", From: client, To: server, Protocol: traffic.UDP, Payload: datagram,
			Schedule: []traffic.Step{{Rate: unit.Rate(perSecond(r.Quick) * datagramFrame * 8)}, {At: c.length(r.Quick)}},
		}
		got, err := flowsAlone(ctx, l, []traffic.Flow{flow}, traffic.Options{Duration: c.length(r.Quick) + 200*time.Millisecond})
		if err != nil {
			return err
		}
		full, err := socketDrops(l)
		if err != nil {
			return err
		}
		total := got.Flow("f").Total
		// It is unknown whether segments at the end, which no later one has overtaken, are lost.
		missing := float64(total.LostDatagrams)
		sent := missing + float64(total.DeliveredBytes)/datagram
		if full > 0 {
			return fmt.Errorf("the receiver's socket dropped %d datagrams: not all losses are the link's", full)
		}
		if stats, ok := l.WireStats(0); ok && stats[0].Dropped+stats[0].Missed+stats[0].Failed > 0 {
			return fmt.Errorf("the emulator was so late that it lost %d frames", stats[0].Dropped+stats[0].Missed+stats[0].Failed)
		}
		mean := c.loss.Mean()
		sigma := math.Sqrt(sent * mean * (1 - mean))
		sheet := r.Sheet(bench.Ours)
		sheet.Set(c.id(), math.Abs(missing-sent*mean)/sigma)
		sheet.Note(c.id(), "%.0f of %.0f segments are missing, %.0f expected, sigma %.1f", missing, sent, sent*mean, sigma)
		if !r.Quick && sent < 0.99*c.segments {
			sheet.Note(c.id(), "only %.0f segments were sent, of %.0f", sent, c.segments)
		}
		return nil
	})
}
