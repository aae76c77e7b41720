package probing

import (
	"math"
	"math/rand/v2"
	"slices"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/probe"
)

// outcome is the result of a method on one path.
type outcome struct {
	// off is the relative error, NaN without an estimate.
	off float64
	// covered: the interval includes the truth; width is that of the interval, relative to the truth.
	covered bool
	width   float64
	// why is the reason for no estimate.
	why     string
	bytes   float64
	seconds float64
}

// judge compares an estimate with the truth.
func judge(e probe.Estimate, truth float64) outcome {
	switch {
	case !e.Known():
		return outcome{off: math.NaN(), why: e.Reason}
	case e.AtLeast:
		return outcome{off: math.NaN(), why: "only a bound"}
	}
	return outcome{
		off: math.Abs(e.Value/truth - 1), covered: e.Low <= truth && truth <= e.High, width: (e.High - e.Low) / truth,
	}
}

// told converts a result of a method of the dissertation.
func told(value float64, err error) probe.Estimate {
	if err != nil {
		return probe.NoEstimate(err.Error())
	}
	return probe.Estimate{Value: value}
}

// pool is the outcomes of many paths, or runs.
type pool []outcome

// answered returns those with an estimate.
func (p pool) answered() (out pool) {
	for _, o := range p {
		if !math.IsNaN(o.off) {
			out = append(out, o)
		}
	}
	return out
}

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[min(int(math.Ceil(q*float64(len(values))))-1, len(values)-1)]
}

func (p pool) each(of func(outcome) float64) []float64 {
	out := make([]float64, len(p))
	for i, o := range p {
		out[i] = of(o)
	}
	return out
}

// percents returns the errors, in percent. A path without an estimate counts as 100 %.
func (p pool) percents() []float64 {
	return p.each(func(o outcome) float64 {
		if math.IsNaN(o.off) {
			return 100
		}
		return 100 * o.off
	})
}

// p90 returns the 90th percentile of the error, in percent, and its 90 % interval by bootstrap.
func (p pool) p90() (value, low, high float64) {
	off := p.percents()
	value = quantile(off, 0.9)
	rng := rand.New(rand.NewPCG(1, uint64(len(off))))
	var again []float64
	for range 400 {
		drawn := make([]float64, len(off))
		for i := range drawn {
			drawn[i] = off[rng.IntN(len(off))]
		}
		again = append(again, quantile(drawn, 0.9))
	}
	return value, quantile(again, 0.05), quantile(again, 0.95)
}

// setP90 sets a claim about the error.
func (p pool) setP90(sheet *bench.Sheet, id string) {
	if len(p) == 0 {
		return
	}
	v, low, high := p.p90()
	sheet.Set(id, v)
	off := p.answered().each(func(o outcome) float64 { return 100 * o.off })
	sheet.Note(id, "%d paths; p90's 90 %% interval %s to %s %%, median error %s %%, largest %s %%", len(p), bench.Number(low), bench.Number(high), bench.Number(quantile(off, 0.5)), bench.Number(quantile(off, 1)))
	p.noteSilent(sheet, id)
}

// noteSilent adds a note on those without an estimate.
func (p pool) noteSilent(sheet *bench.Sheet, id string) {
	if n := len(p) - len(p.answered()); n > 0 {
		sheet.Note(id, "%d without an estimate count as an error of 100 %%: %s", n, p.why())
	}
}

// setMedian sets a claim about the median error of some runs on one path.
func (p pool) setMedian(sheet *bench.Sheet, id string) {
	off := p.percents()
	sheet.Set(id, quantile(off, 0.5))
	sheet.Note(id, "%d runs, largest error %s %%", len(off), bench.Number(quantile(off, 1)))
	p.noteSilent(sheet, id)
}

// why lists the reasons for no estimate.
func (p pool) why() (out string) {
	var seen []string
	for _, o := range p {
		if o.why != "" && !slices.Contains(seen, o.why) && len(seen) < 3 {
			seen = append(seen, o.why)
			if out != "" {
				out += "; "
			}
			out += o.why
		}
	}
	return out
}

// setSpent sets the maximum of bytes and seconds of a method.
func (p pool) setSpent(sheet *bench.Sheet, bytes, seconds string) {
	sheet.Set(bytes, quantile(p.each(func(o outcome) float64 { return o.bytes / 1e6 }), 1))
	sheet.Note(bytes, "maximum of %d; median %s MB", len(p), bench.Number(quantile(p.each(func(o outcome) float64 { return o.bytes / 1e6 }), 0.5)))
	sheet.Set(seconds, quantile(p.each(func(o outcome) float64 { return o.seconds }), 1))
	sheet.Note(seconds, "maximum of %d; median %s s", len(p), bench.Number(quantile(p.each(func(o outcome) float64 { return o.seconds }), 0.5)))
}

// honestClaims are those of the row "honest" for one estimator.
func honestClaims(name string) []bench.Claim {
	id := "honest/" + name
	return []bench.Claim{
		bench.NewClaim(id+"/covers-at-least", "intervals that include the truth", minCovers),
		bench.NewClaim(id+"/covers-at-most", "intervals that include the truth", maxCovers),
		bench.NewClaim(id+"/width", "median width of the interval", maxWidth),
		bench.NewClaim(id+"/abstentions", "paths without an estimate", abstentions),
	}
}

// setHonest sets them.
func (p pool) setHonest(sheet *bench.Sheet, name string) {
	id := "honest/" + name
	answered := p.answered()
	if len(answered) == 0 {
		return
	}
	covered := 0
	for _, o := range answered {
		if o.covered {
			covered++
		}
	}
	part := 100 * float64(covered) / float64(len(answered))
	sheet.Set(id+"/covers-at-least", part)
	sheet.Set(id+"/covers-at-most", part)
	v, _, _ := answered.p90()
	width := 100 * quantile(answered.each(func(o outcome) float64 { return o.width }), 0.5)
	sheet.Set(id+"/width", width/v)
	sheet.Note(id+"/width", "%s %%, with a p90 error of %s %%, on %d paths", bench.Number(width), bench.Number(v), len(answered))
	sheet.Set(id+"/abstentions", 100*float64(len(p)-len(answered))/float64(len(p)))
	if why := p.why(); why != "" {
		sheet.Note(id+"/abstentions", "%s", why)
	}
}
