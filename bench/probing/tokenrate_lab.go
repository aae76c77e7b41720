package probing

import (
	"context"
	"math"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// iperf3 is the peer in the lab: the tool that an expert would use.
const iperf3 = "iperf3"

// shaper is a cell of the lab: a link with a token bucket, in both directions.
type shaper struct {
	name           string
	capacity, rate unit.Rate
	bucket         unit.Bytes
	cross          float64 // relative to the token rate
	quick          bool    // part of the smoke run
}

var shapers = []shaper{
	{"50Mbit-1.6KB", unit.Gbit, 50 * unit.Mbit, 1600, 0, false},
	{"200Mbit-100KB", unit.Gbit, 200 * unit.Mbit, 100_000, 0, true},
	{"600Mbit-10KB-cross-30%", unit.Gbit, 600 * unit.Mbit, 10_000, 0.3, true},
	{"400Mbit-1MB", unit.Gbit, 400 * unit.Mbit, 1_000_000, 0, false},
	{"900Mbit-100KB", unit.Gbit, 900 * unit.Mbit, 100_000, 0, false},
	{"200Mbit-1.6KB-cross-50%", unit.Gbit, 200 * unit.Mbit, 1600, 0.5, false},
}

func (c shaper) link() link.Spec {
	s := link.Spec{
		Rate: c.capacity, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 500 * time.Millisecond},
		Bucket: &link.Bucket{Rate: c.rate, Size: c.bucket},
	}
	if c.cross > 0 {
		s.Cross = []link.Cross{{Load: unit.Rate(c.cross * float64(c.rate)), Model: link.Pareto, Sizes: []int{64, 576, 1514}}}
	}
	return s
}

func (c shaper) id() string { return "tokenrate/lab/" + c.name }

// tokenRateLab is a case for each cell.
func tokenRateLab() (out []bench.Case) {
	for _, c := range shapers {
		id := c.id()
		claims := []bench.Claim{
			bench.NewClaim(id+"/p90", "p90 error of the token rate", tokenRateOff, iperf3, narrowTokenRate),
			bench.NewClaim(id+"/bytes", "maximum of sent bytes in a direction", spentBytes, iperf3, narrowTokenRate),
			bench.NewClaim(id+"/seconds", "maximum duration for a direction", spentSeconds, iperf3, narrowTokenRate),
			c.bucketClaim(),
		}
		out = append(out, bench.Case{
			Name: id, Claims: claims, Run: c.run,
			Takes: func(quick bool) time.Duration { return bench.Pick(quick, 5*time.Second, 22*time.Second) },
		})
	}
	return out
}

func (c shaper) bucketID() string { return "bucket/lab/" + c.name }

func (c shaper) bucketClaim() bench.Claim {
	if c.cross > 0 {
		return bench.NewClaim(c.bucketID(), "buckets that are not smaller than their reported lower bound", boundTrue)
	}
	return bench.NewClaim(c.bucketID(), "p90 error of the bucket", bucketOff)
}

// runsOf returns how often a cell is measured: each run has two directions.
func runsOf(quick bool) int { return bench.Pick(quick, 1, 10) }

func (c shaper) run(ctx context.Context, r *bench.Run) error {
	return withServer(ctx, twoHosts(c.link()), func(s *stage) error {
		var ours, seed pool
		var buckets []bucketSaid
		for range runsOf(r.Quick) {
			report, err := s.probe(ctx, "tokenrate", "--bytes", "5MB")
			if err != nil {
				return err
			}
			for _, d := range probe.Directions {
				a := report.Directions[d]
				o := judge(a.TokenRate.Rate, float64(c.rate))
				o.bytes, o.seconds = float64(a.Bytes), a.Seconds
				ours = append(ours, o)
				buckets = append(buckets, bucketSaid{a.TokenRate.Bucket, shaped{rate: float64(c.rate), bucket: float64(c.bucket), cross: c.cross}})
			}
		}
		report, err := s.probe(ctx, "tokenrate", "--method", "seed", "--capacity", c.capacity.String(), "--direction", "out")
		if err != nil {
			return err
		}
		a := report.Directions[probe.Out]
		o := judge(a.TokenRate.Rate, float64(c.rate))
		o.bytes, o.seconds = float64(a.Bytes), a.Seconds
		seed = append(seed, o)
		id := c.id()
		sheet := r.Sheet(bench.Ours)
		ours.setP90(sheet, id+"/p90")
		ours.setSpent(sheet, id+"/bytes", id+"/seconds")
		seed.setP90(r.Sheet(narrowTokenRate), id+"/p90")
		seed.setSpent(r.Sheet(narrowTokenRate), id+"/bytes", id+"/seconds")
		c.setBucket(sheet, buckets)
		if err := s.usable(); err != nil {
			sheet.Note(id+"/p90", "%v", err)
		}
		return c.iperf(ctx, r, s)
	})
}

// setBucket sets the cell's claim about its bucket.
func (c shaper) setBucket(sheet *bench.Sheet, said []bucketSaid) {
	allowed := allowedBucket(float64(c.rate), float64(c.bucket))
	var off []float64
	held := 0
	for _, b := range said {
		e := b.said
		switch {
		case !e.Known():
			off = append(off, 100)
			continue
		case e.AtLeast:
			e.Low = e.Value
		}
		off = append(off, math.Abs(e.Value-float64(c.bucket))/allowed)
		if e.Low <= float64(c.bucket)+allowed {
			held++
		}
	}
	if c.cross > 0 {
		sheet.Set(c.bucketID(), 100*float64(held)/float64(len(said)))
		return
	}
	sheet.Set(c.bucketID(), quantile(off, 0.9))
	sheet.Note(c.bucketID(), "%d runs; an error of 1 is max(2 %%, one packet, R x 2 us) = %.0f bytes", len(off), allowed)
}

// iperf sets the peer's values.
func (c shaper) iperf(ctx context.Context, r *bench.Run, s *stage) error {
	return s.setIperf(ctx, r, bench.Pick(r.Quick, 1, 10), float64(c.rate), c.id(), "/p90")
}

// setIperf sets what iperf3 has of a rate: its error, in the claim of the id that off ends, bytes and seconds.
func (s *stage) setIperf(ctx context.Context, r *bench.Run, seconds int, truth float64, id, off string) error {
	sent, err := s.iperf(ctx, seconds)
	if err != nil {
		return err
	}
	sheet := r.Sheet(iperf3)
	sheet.Set(id+off, offBy(sent*8/float64(seconds), truth))
	sheet.Set(id+"/bytes", sent/1e6)
	sheet.Set(id+"/seconds", float64(seconds))
	return nil
}
