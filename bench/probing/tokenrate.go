package probing

import (
	"context"
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/tokenrate"
)

// The dissertation's methods are compared on the same paths.
const narrowTokenRate, narrowLinkCapacity = "NarrowTokenRate", "NarrowLinkCapacity"

// pathsOf returns the number of paths of a claim.
func pathsOf(quick bool) int { return bench.Pick(quick, 60, 300) }

// tokenRateCase measures token rates and buckets on random paths: first the capacity, as a user would.
func tokenRateCase(d *bench.Draw) bench.Case {
	const name = "tokenrate/simulated"
	claims := []bench.Claim{
		bench.NewClaim(name+"/p90", "p90 error of the token rate", tokenRateOff, narrowTokenRate),
		bench.NewClaim(name+"/bytes", "maximum of sent bytes", spentBytes, narrowTokenRate),
		bench.NewClaim(name+"/seconds", "maximum duration", spentSeconds, narrowTokenRate),
		bench.NewClaim("bucket/simulated/cross-0", "p90 error of the bucket", bucketOff),
		bench.NewClaim("bucket/simulated/cross", "buckets that are not smaller than their reported lower bound", boundTrue),
	}
	claims = append(claims, honestClaims("tokenrate")...)
	return bench.Case{
		Name: name, Claims: claims,
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, 4*time.Second, 15*time.Second) },
		Drawn: "R 50 to 2,000 Mbit/s, buckets of 1.6 KB to 1 MB, cross traffic of 0 to 50 % on each of 1 to 4 hops (Poisson, Pareto), links of 1 Gbit/s and more, stamps 0.5 to 1 us off, clocks up to 50 ppm",
		Run:   func(ctx context.Context, r *bench.Run) error { return runTokenRate(ctx, r, d, name) },
	}
}

func runTokenRate(ctx context.Context, r *bench.Run, d *bench.Draw, name string) error {
	n := pathsOf(r.Quick)
	ours, seeds := make(pool, n), make(pool, n)
	buckets := make([]bucketSaid, n)
	onAll(ctx, n, func(i int) {
		p := drawTokenRate(d.For(fmt.Sprintf("%s/%d", name, i)))
		m := path.Method{Parts: path.Parts{TokenRate: true}, Budget: 5_000_000}
		samples, bytes, seconds := simulate(p.Path, d.Seed()+uint64(i), m.Next)
		a := m.Estimate(samples)
		if a.TokenRate == nil {
			a.TokenRate = &tokenrate.Result{Rate: probe.NoEstimate("not measured"), Bucket: probe.NoEstimate("not measured")}
		}
		ours[i] = judge(a.TokenRate.Rate, p.rate)
		ours[i].bytes, ours[i].seconds = bytes, seconds
		buckets[i] = bucketSaid{a.TokenRate.Bucket, p}
		seeds[i] = seedTokenRate(p, d.Seed()+uint64(i))
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	sheet := r.Sheet(bench.Ours)
	ours.setP90(sheet, name+"/p90")
	ours.setSpent(sheet, name+"/bytes", name+"/seconds")
	ours.setHonest(sheet, "tokenrate")
	seed := r.Sheet(narrowTokenRate)
	seeds.setP90(seed, name+"/p90")
	seeds.setSpent(seed, name+"/bytes", name+"/seconds")
	setBuckets(sheet, buckets)
	distribution(r, "tokenrate", "tokenrate-simulated", "Token rates on random paths", map[string]pool{bench.Ours: ours, narrowTokenRate: seeds})
	return nil
}

// seedTokenRate is the dissertation's method, which gets the capacity: it would need 20 s and 1 MB for
// each step of its own.
func seedTokenRate(p shaped, seed uint64) outcome {
	m := tokenrate.NarrowTokenRate{Capacity: p.capacity}
	samples, bytes, seconds := simulate(p.Path, seed, m.Next)
	o := judge(told(m.Estimate(samples)), p.rate)
	o.bytes, o.seconds = bytes, seconds
	return o
}

// bucketSaid is the estimate of a path's bucket.
type bucketSaid struct {
	said probe.Estimate
	on   shaped
}

// allowedBucket returns max(2 %, one packet, R x 2 us), in bytes.
func allowedBucket(rate, bucket float64) float64 {
	return max(0.02*bucket, 1500+probe.Overhead, rate*2e-6/8)
}

// setBuckets sets the claims about buckets: the error without cross traffic, relative to the allowed
// error, and the fraction of correct bounds otherwise.
func setBuckets(sheet *bench.Sheet, all []bucketSaid) {
	var off []float64
	bounds, held, none := 0, 0, 0
	for _, b := range all {
		allowed := allowedBucket(b.on.rate, b.on.bucket)
		switch {
		case b.on.cross == 0 && !b.said.Known():
			off = append(off, 100)
		case b.on.cross == 0:
			off = append(off, math.Abs(b.said.Value-b.on.bucket)/allowed)
		case !b.said.Known():
			none++
		default:
			bounds++
			bound := b.said.Low
			if b.said.AtLeast {
				bound = b.said.Value
			}
			if bound <= b.on.bucket+allowed {
				held++
			}
		}
	}
	if len(off) > 0 {
		sheet.Set("bucket/simulated/cross-0", quantile(off, 0.9))
		sheet.Note("bucket/simulated/cross-0", "%d paths; an error of 1 is max(2 %%, one packet, R x 2 us); largest %s", len(off), bench.Number(quantile(off, 1)))
	}
	if bounds > 0 {
		sheet.Set("bucket/simulated/cross", 100*float64(held)/float64(bounds))
		sheet.Note("bucket/simulated/cross", "%d bounds, and %d paths without one", bounds, none)
	}
}

// hugeBucketCase is a bucket that a probe cannot empty within its budget.
func hugeBucketCase(d *bench.Draw) bench.Case {
	const name = "bucket/simulated/100MB"
	return bench.Case{
		Name: name, Claims: []bench.Claim{bench.NewClaim(name, "correct joint bounds, without a rate", boundTrue)},
		Takes: func(bool) time.Duration { return 2 * time.Second },
		Run: func(ctx context.Context, r *bench.Run) error {
			n := bench.Pick(r.Quick, 20, 100)
			right := make([]float64, n)
			onAll(ctx, n, func(i int) {
				v := d.For(fmt.Sprintf("%s/%d", name, i))
				p := drawShaped(v, v.Log(50e6, 700e6), 100e6, 0)
				m := path.Method{Parts: path.Parts{TokenRate: true}}
				samples, _, _ := simulate(p.Path, d.Seed()+uint64(i), m.Next)
				t := m.Estimate(samples).TokenRate
				if t == nil || t.Rate.Known() || t.Joint == nil {
					return
				}
				// The joint bound: R >= Rate, or bucket + R * t >= Bytes.
				if p.rate >= 0.99*t.Joint.Rate || p.bucket+p.rate*t.Joint.Took/8 >= float64(t.Joint.Bytes) {
					right[i] = 1
				}
			})
			sum := 0.0
			for _, v := range right {
				sum += v
			}
			r.Sheet(bench.Ours).Set(name, 100*sum/float64(n))
			return ctx.Err()
		},
	}
}
