package probing

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/wire"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/available"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/unit"
)

// pathload is the peer: the method as the dissertation describes it (5.3).
const pathload = "pathload"

// allowedAvailable returns max(8 %, 2 % of C), in bit/s.
func allowedAvailable(realised, capacity float64) float64 { return max(0.08*realised, 0.02*capacity) }

// availableCell is a set of paths whose errors are pooled.
type availableCell struct {
	name, what string
	draw       func(d *bench.Draw) (sim.Path, float64)
}

// shaperOf is what the earlier methods would have measured of a path's shaper.
func shaperOf(p sim.Path) (rate, bucket float64) {
	for _, h := range p.Hops {
		if h.Bucket != nil {
			return float64(h.Bucket.Rate), float64(h.Bucket.Size)
		}
	}
	return 0, 0
}

// loaded is a link of 1 Gbit/s with cross traffic, with a faster link on either side.
func loaded(d *bench.Draw, left float64) (sim.Path, float64) {
	const c = 1e9
	p := ends(d)
	for i := range 3 {
		hop := link.Spec{Rate: 2 * unit.Gbit, Delay: d.Duration(100*time.Microsecond, 5*time.Millisecond), Queue: endless}
		if i == 1 {
			hop.Rate, hop.Cross = unit.Gbit, crossOf(d, c-left)
		} else {
			hop.Cross = crossOf(d, d.Uniform(0, 0.4)*2e9)
		}
		p.Hops = append(p.Hops, hop)
	}
	return p, c
}

var availableCells = []availableCell{
	{"load", "100 to 800 of 1,000 Mbit/s", func(d *bench.Draw) (sim.Path, float64) { return loaded(d, d.Uniform(100e6, 800e6)) }},
	{"suspended", "the same, and (N0, T0) = 200 or 1000 packets, 1, 5 or 10 ms", func(d *bench.Draw) (sim.Path, float64) {
		p, c := loaded(d, d.Uniform(100e6, 800e6))
		// The receiver must take delayed packets in time, or it is the limit.
		n, t := d.Int(0, 1), bench.OneOf(d, 1, 5, 10)
		p.Hops[2].Suspension = &link.Suspension{Packets: []int{200, 1000}[n], Time: time.Duration(t) * time.Millisecond}
		return p, c
	}},
	{"shaped", "behind a token bucket of 200 to 800 Mbit/s with 10 KB to 1 MB, loaded to 10 to 70 %", func(d *bench.Draw) (sim.Path, float64) {
		p, c := loaded(d, 1e9)
		r := d.Log(200e6, 800e6)
		p.Hops[1].Bucket = &link.Bucket{Rate: unit.Rate(r), Size: unit.Bytes(d.Log(10e3, 1e6))}
		p.Hops[1].Cross = crossOf(d, d.Uniform(0.1, 0.7)*r)
		return p, c
	}},
}

func availableCases(d *bench.Draw) (out []bench.Case) {
	for i, c := range availableCells {
		id := "available/simulated/" + c.name
		claims := []bench.Claim{
			bench.NewClaim(id+"/p90", "p90 error, relative to the allowed error: "+c.what, availableOff, pathload),
			bench.NewClaim(id+"/bytes", "maximum of sent bytes", spentBytes, pathload),
			bench.NewClaim(id+"/seconds", "maximum duration", availableTime, pathload),
			bench.NewClaim(id+"/aborts", "runs without an estimate", noAborts, pathload),
		}
		if i == 0 {
			claims = append(claims, honestClaims("available")...)
		}
		out = append(out, bench.Case{
			Name: id, Claims: claims, Drawn: c.what,
			Takes: func(quick bool) time.Duration { return bench.Pick(quick, 4*time.Second, 20*time.Second) },
			Run:   func(ctx context.Context, r *bench.Run) error { return c.run(ctx, r, d, id, i == 0) },
		})
	}
	return out
}

func (c availableCell) run(ctx context.Context, r *bench.Run, d *bench.Draw, id string, honest bool) error {
	n := bench.Pick(r.Quick, 30, 300)
	ours, peers, judged, peersJudged := make(pool, n), make(pool, n), make(pool, n), make(pool, n)
	onAll(ctx, n, func(i int) {
		p, capacity := c.draw(d.For(fmt.Sprintf("%s/%d", id, i)))
		ours[i], judged[i] = measureAvailable(p, capacity, d.Seed()+uint64(i), oursAvailable)
		if i < bench.Pick(r.Quick, 10, 60) {
			peers[i], peersJudged[i] = measureAvailable(p, capacity, d.Seed()+uint64(i), pathloads)
		}
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	write := func(sheet *bench.Sheet, p pool) {
		off := p.each(func(o outcome) float64 {
			if math.IsNaN(o.off) {
				return 100
			}
			return o.off
		})
		aborts := len(p) - len(p.answered())
		sheet.Set(id+"/p90", quantile(off, 0.9))
		sheet.Note(id+"/p90", "%d paths; an error of 1 is max(8 %%, 2 %% of C); median %s, largest %s", len(p), bench.Number(quantile(off, 0.5)), bench.Number(quantile(off, 1)))
		sheet.Set(id+"/aborts", float64(aborts))
		if aborts > 0 {
			sheet.Note(id+"/aborts", "%s", p.why())
		}
		p.setSpent(sheet, id+"/bytes", id+"/seconds")
	}
	write(r.Sheet(bench.Ours), ours)
	if done := measuredOf(peers); len(done) > 0 {
		write(r.Sheet(pathload), done)
	}
	distribution(r, "available", "available-"+c.name, "Available bandwidth: "+c.what, map[string]pool{bench.Ours: judged, pathload: peersJudged[:bench.Pick(r.Quick, 10, 60)]})
	if honest {
		judged.setHonest(r.Sheet(bench.Ours), "available")
	}
	return nil
}

// method measures the available bandwidth: it determines what to send, and the estimate.
type method func(p sim.Path, capacity float64) (next, func([]probe.Sample) probe.Estimate)

func oursAvailable(p sim.Path, capacity float64) (next, func([]probe.Sample) probe.Estimate) {
	m := available.HoldTrains{Capacity: capacity}
	m.TokenRate, m.Bucket = shaperOf(p)
	return m.Next, func(s []probe.Sample) probe.Estimate { return m.Estimate(s).Available }
}

func pathloads(_ sim.Path, capacity float64) (next, func([]probe.Sample) probe.Estimate) {
	m := available.Pathload{Highest: capacity}
	return m.Next, func(s []probe.Sample) probe.Estimate { return m.Estimate(s).Available }
}

// measureAvailable returns the error relative to the allowed error, and judged relative to the truth:
// what cross traffic really left while trains were in flight.
func measureAvailable(p sim.Path, capacity float64, seed uint64, m method) (o, judged outcome) {
	n := sim.New(p, seed)
	step, estimate := m(p, capacity)
	n.Record()
	samples := sendAll(n, step)
	truth := float64(n.Realised())
	judged = judge(estimate(samples), truth)
	o = judged
	o.off *= truth / allowedAvailable(truth, capacity)
	o.bytes, o.seconds = spent(samples)
	return o, judged
}

// availableLabs are the lab's cells; the truth is the link's replay of only the cross traffic over the
// probe's window.
var availableLabs = []struct {
	name string
	load unit.Rate
	hold *link.Suspension
}{
	{"200Mbit", 800 * unit.Mbit, nil},
	{"500Mbit", 500 * unit.Mbit, nil},
	{"800Mbit", 200 * unit.Mbit, nil},
	{"500Mbit-1000-5ms", 500 * unit.Mbit, &link.Suspension{Packets: 1000, Time: 5 * time.Millisecond}},
}

func availableLab(d *bench.Draw) (out []bench.Case) {
	for _, c := range availableLabs {
		id := "available/lab/" + c.name
		s := link.Spec{Rate: unit.Gbit, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 200 * time.Millisecond}, Suspension: c.hold, Cross: []link.Cross{{Load: c.load}}}
		out = append(out, bench.Case{
			Name: id,
			Claims: []bench.Claim{
				bench.NewClaim(id+"/p90", "p90 error, relative to the allowed error", availableOff),
				bench.NewClaim(id+"/bytes", "maximum of sent bytes in a direction", spentBytes),
				bench.NewClaim(id+"/aborts", "runs without an estimate", noAborts),
			},
			Takes: func(quick bool) time.Duration { return bench.Pick(quick, 5*time.Second, 25*time.Second) },
			Run: func(ctx context.Context, r *bench.Run) error {
				t := twoHosts(s)
				t.Links[0].Seed = d.For(id).Seed()
				return withServer(ctx, t, func(on *stage) error {
					return on.available(ctx, r, id, s, t.Links[0].Seed)
				})
			},
		})
	}
	return out
}

// available compares estimates with what cross traffic left in each one's window.
func (s *stage) available(ctx context.Context, r *bench.Run, id string, spec link.Spec, seed uint64) error {
	stats, _ := s.WireStats(0)
	others := map[probe.Direction]*others{}
	for i, d := range probe.Directions {
		others[d] = newOthers(spec, seed+uint64(i), stats[i].Begun)
	}
	var off []float64
	aborts, maxBytes, bias := 0, 0.0, 0.0
	late, wanted := 0, bench.Pick(r.Quick, 2, 26)
	for len(off) < wanted && late < wanted {
		before, _ := s.WireStats(0)
		log := filepath.Join(s.dir, "log")
		report, err := s.probe(ctx, "available", "--log", log)
		if err != nil {
			return err
		}
		samples, err := readSamples(log)
		if err != nil {
			return err
		}
		after, _ := s.WireStats(0)
		for i, d := range probe.Directions {
			// If a link reads packets late it carries them as a burst that was not sent.
			if after[i].Late > before[i].Late {
				late++
				continue
			}
			a := report.Directions[d]
			from, to := windowOf(samples[d], "available/")
			if a.Available == nil || !a.Available.Available.Known() || to <= from {
				aborts++
				off = append(off, 100)
				continue
			}
			truth := others[d].left(from, to)
			high := (a.Available.Available.Value - truth) / allowedAvailable(truth, float64(spec.Rate))
			off, bias = append(off, math.Abs(high)), bias+high
			maxBytes = max(maxBytes, float64(a.Bytes))
		}
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set(id+"/p90", quantile(off, 0.9))
	if late > 0 {
		sheet.Note(id+"/p90", "%d more runs do not count: the emulator was late by more than %v", late, wire.DefaultLateBound)
	}
	sheet.Note(id+"/p90", "%d runs; an error of 1 is max(8 %%, 2 %% of C); median %s, largest %s, mean bias %s", len(off), bench.Number(quantile(off, 0.5)), bench.Number(quantile(off, 1)), bench.Number(bias/float64(max(len(off)-aborts, 1))))
	sheet.Set(id+"/bytes", maxBytes/1e6)
	sheet.Note(id+"/bytes", "including the capacity and the token rate that are measured before")
	sheet.Set(id+"/aborts", float64(aborts))
	return nil
}

// others computes a link's cross traffic once more: the seed determines when each packet arrives,
// whatever else is sent.
type others struct {
	spec link.Spec
	link *link.Link
	log  []link.Result
}

func newOthers(s link.Spec, seed uint64, begun int64) *others {
	return &others{spec: s, link: link.New(s, seed, begun)}
}

// left returns the bandwidth that they left of the link over [from, to) ns, in bit/s. Windows come in
// order.
func (o *others) left(from, to int64) float64 {
	const settled = int64(time.Second) // their queue is in a steady state by then
	for {
		r, ok := o.link.Take(to + settled)
		if !ok {
			break
		}
		o.log = append(o.log, r)
	}
	o.log = slices.DeleteFunc(o.log, func(r link.Result) bool { return r.Arrived < from-settled })
	return float64(link.Available(o.spec, o.log, from, to))
}

// readSamples returns those of a log.
func readSamples(file string) (map[probe.Direction][]probe.Sample, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := probe.ReadLog(f)
	if err != nil {
		return nil, err
	}
	return r.Samples, nil
}

// windowOf returns the time range of samples of some purposes, in ns of CLOCK_MONOTONIC.
func windowOf(samples []probe.Sample, purpose string) (from, to int64) {
	for i := range samples {
		if s := &samples[i]; strings.HasPrefix(s.Purpose, purpose) && len(s.Sent) > 0 {
			if from == 0 {
				from = s.Sent[0]
			}
			to = s.Sent[len(s.Sent)-1]
		}
	}
	return from, to
}
