package probing

import (
	"context"
	"errors"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// slowPing is the time between two packets of a bystander: 12 % of a link of 0.5 Mbit/s.
const slowPing = 10 * time.Millisecond

// slowLinks are the links of the row "slow", with the narrower of the link's rate and a limiter's.
var slowLinks = []struct {
	name string
	rate unit.Rate
	link link.Spec
}{
	{"link-500kbit", 500 * unit.Kbit, link.Spec{}},
	{"link-1Mbit", unit.Mbit, link.Spec{}},
	{"link-2Mbit-64-packets", 2 * unit.Mbit, link.Spec{Queue: link.Amount{Segments: 64}}},
	{"link-5Mbit", 5 * unit.Mbit, link.Spec{}},
	{"link-10Mbit", 10 * unit.Mbit, link.Spec{}},
	{"cross-30%-2Mbit", 2 * unit.Mbit, link.Spec{Cross: []link.Cross{{Load: 600 * unit.Kbit, Model: link.Poisson, Sizes: []int{64, 576, 1514}}}}},
	{"shaper-1Mbit-10KB-of-4Mbit", 4 * unit.Mbit, link.Spec{Bucket: &link.Bucket{Rate: unit.Mbit, Size: 10_000}}},
	{"shaper-2Mbit-20KB-of-10Mbit", 10 * unit.Mbit, link.Spec{Bucket: &link.Bucket{Rate: 2 * unit.Mbit, Size: 20_000}}},
	{"policer-2Mbit-10KB-of-10Mbit", 10 * unit.Mbit, link.Spec{Bucket: &link.Bucket{Rate: 2 * unit.Mbit, Size: 10_000, Police: true}}},
}

func slowCases() (out []bench.Case) {
	for _, c := range slowLinks {
		id := "slow/" + c.name
		s := c.link
		s.Rate, s.Delay = c.rate, 10*time.Millisecond
		if s.Queue == (link.Amount{}) {
			s.Queue = link.Amount{Time: 200 * time.Millisecond}
		}
		out = append(out, bench.Case{
			Name: id,
			Claims: []bench.Claim{
				bench.NewClaim(id+"/seconds", "time of one direction of \"probe path\"", slowSeconds),
				bench.NewClaim(id+"/bytes", "bytes of one direction", slowBytes),
				bench.NewClaim(id+"/delay", "p99 of a bystander's round-trip time, minus that without a probe", harmDelay),
				bench.NewClaim(id+"/lost", "packets of the probe that are lost", slowLost),
				bench.NewClaim(id+"/capacity", "p90 error of the capacity", capacityOff),
			},
			Takes: bench.Takes(8*time.Second, 40*time.Second),
			Run: func(ctx context.Context, r *bench.Run) error {
				return withServer(ctx, twoHosts(s, link.Spec{Rate: 100 * unit.Mbit, Delay: s.Delay}), func(on *stage) error { return on.slow(ctx, r, id, float64(c.rate)) })
			},
		})
	}
	return out
}

// slow measures the path to the server beside a bystander.
func (s *stage) slow(ctx context.Context, r *bench.Run, id string, capacity float64) error {
	alone, err := s.beside(ctx, slowPing, func() error { return bench.Sleep(ctx, 3*time.Second) })
	if err != nil {
		return err
	}
	var found pool
	var seconds, bytes, delays, lost []float64
	for range bench.Pick(r.Quick, 1, 7) {
		b, err := s.beside(ctx, slowPing, func() error {
			got, err := s.probe(ctx, "path", "--direction", "out")
			if err != nil {
				return err
			}
			a := got.Directions[probe.Out]
			if a == nil || a.Capacity == nil {
				return errors.New("no answer")
			}
			seconds, bytes, lost = append(seconds, a.Seconds), append(bytes, float64(a.Bytes)/1e3), append(lost, 100*a.Lost)
			found = append(found, judge(*a.Capacity, capacity))
			return nil
		})
		if err != nil {
			return err
		}
		delays = append(delays, b.p99-alone.p99)
	}
	sheet := r.Sheet(bench.Ours)
	sheet.SetAll(id+"/seconds", seconds)
	sheet.SetAll(id+"/bytes", bytes)
	sheet.SetAll(id+"/delay", delays)
	sheet.SetAll(id+"/lost", lost)
	found.setP90(sheet, id+"/capacity")
	sheet.Note(id+"/delay", "%s ms without a probe", bench.Number(alone.p99))
	return nil
}
