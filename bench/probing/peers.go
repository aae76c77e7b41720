package probing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/unit"
)

// Peers that are not run: their figures are those of the source, on the source's network.
const (
	pathloadCited = "pathload, cited"
	pathrateCited = "pathrate, cited"
	udpstCited    = "OB-UDPST, cited"
)

// cited is what a publication has of one run.
type cited struct{ megabytes, seconds, low, high float64 }

// set sets the claims below id. The answer is the middle of the range.
func (c cited) set(s *bench.Sheet, id string, truth float64) {
	s.Set(id+"/error", offBy((c.low+c.high)/2, truth))
	s.Set(id+"/width", 100*(c.high-c.low)/truth)
	s.Set(id+"/bytes", c.megabytes)
	s.Set(id+"/seconds", c.seconds)
}

func offBy(said, truth float64) float64 { return 100 * math.Abs(said/truth-1) }

// table52 is table 5.2 of the dissertation: the available bandwidth in Mbit/s of a path, and what two methods made of it.
var table52 = []struct {
	available            float64
	pathload, packetTick cited
}{
	{200, cited{7.40, 8.63, 72, 248}, cited{19.4, 6.35, 164, 178}},
	{300, cited{21.9, 13.9, 190, 291}, cited{20.5, 5.56, 280, 291}},
	{400, cited{11.0, 8.71, 322, 449}, cited{13.9, 4.32, 374, 390}},
	{500, cited{19.9, 11.7, 471, 603}, cited{11.5, 3.56, 503, 524}},
	{600, cited{11.0, 8.68, 499, 825}, cited{15.4, 4.7, 610, 629}},
	{700, cited{11.0, 8.66, 743, 912}, cited{14.5, 4.44, 686, 700}},
	{800, cited{9.20, 8.05, 775, 846}, cited{9.86, 3.09, 753, 765}},
}

// pathrateRuns are the middles of the answers of pathrate that the dissertation has (3.7.2), by the true capacity, in Mbit/s.
var pathrateRuns = map[unit.Rate][]float64{100 * unit.Mbit: {100}, unit.Gbit: {980, 2000}}

// pathrateSeconds and udpstSeconds are how long a run takes, from the README of pathrate 2.4.1 and that of OB-UDPST (its default), the tool of the authors of RFC 9097.
const pathrateSeconds, udpstSeconds = 15 * 60, 10

// peerClaims are the claims of one link: nothing is to be reached, the row prints what each tool has.
func peerClaims(id, what string, peers ...string) []bench.Claim {
	return []bench.Claim{
		bench.NewClaim(id+"/error", "median error of "+what, measuredOnly("%"), peers...),
		bench.NewClaim(id+"/bytes", "sent bytes in a direction", measuredOnly("MB"), peers...),
		bench.NewClaim(id+"/seconds", "duration for a direction", measuredOnly("s"), peers...),
	}
}

// peerCases is the row "peers".
func peerCases(d *bench.Draw) (out []bench.Case) {
	for _, t := range table52 {
		out = append(out, peerAvailable(d, t.available, t.pathload, t.packetTick))
	}
	return append(out,
		peerRate("capacity-100Mbit", 100*unit.Mbit, nil),
		peerRate("capacity-1Gbit", unit.Gbit, nil),
		peerRate("shaper-100Mbit-500KB-of-1Gbit", unit.Gbit, &link.Bucket{Rate: 100 * unit.Mbit, Size: 500_000}),
		peerRate("policer-100Mbit-500KB-of-1Gbit", unit.Gbit, &link.Bucket{Rate: 100 * unit.Mbit, Size: 500_000, Police: true}),
	)
}

// peerAvailable is a link of table 5.2.
func peerAvailable(d *bench.Draw, left float64, load, tick cited) bench.Case {
	id := fmt.Sprintf("peers/available-%.0fMbit", left)
	claims := append(peerClaims(id, "the available bandwidth", iperf3, pathloadCited),
		bench.NewClaim(id+"/width", "width of the 90 % interval, or of the range, relative to the truth", measuredOnly("%"), pathloadCited))
	ofPaper := []float64{offBy((tick.low+tick.high)/2, left), tick.megabytes, tick.seconds, 100 * (tick.high - tick.low) / left}
	for i := range claims {
		claims[i] = claims[i].WithPaper(ofPaper[i])
	}
	claims[0] = claims[0].WithNote("the paper is PacketTick, and pathload's figures are from the same table: 5.2 of the dissertation, 1 Gbit/s with other traffic. iperf3 is one TCP connection of 10 s")
	s := link.Spec{Rate: unit.Gbit, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 200 * time.Millisecond}, Cross: []link.Cross{{Load: unit.Gbit - unit.Rate(left*1e6)}}}
	return bench.Case{
		Name: id, Claims: claims, Takes: bench.Takes(12*time.Second, 35*time.Second),
		Run: func(ctx context.Context, r *bench.Run) error {
			t := twoHosts(s)
			t.Links[0].Seed = d.For(id).Seed()
			return withServer(ctx, t, func(on *stage) error {
				if err := on.peersAvailable(ctx, r, id, s, t.Links[0].Seed); err != nil {
					return err
				}
				load.set(r.Sheet(pathloadCited), id, left)
				return on.peerIperf(ctx, r, id, left*1e6)
			})
		},
	}
}

var errNoAnswer = errors.New("the probe has no answer for this direction")

// peersAvailable compares answers with what the other traffic left in the time of each.
func (s *stage) peersAvailable(ctx context.Context, r *bench.Run, id string, spec link.Spec, seed uint64) error {
	stats, ok := s.WireStats(0)
	if !ok {
		return fmt.Errorf("the emulator of the link does not answer")
	}
	truth := newOthers(spec, seed, stats[0].Begun)
	var off, width, bytes, seconds []float64
	for range bench.Pick(r.Quick, 1, 7) {
		log := filepath.Join(s.dir, "log")
		report, err := s.probe(ctx, "available", "--direction", "out", "--log", log)
		if err != nil {
			return err
		}
		samples, err := readSamples(log)
		if err != nil {
			return err
		}
		from, to := windowOf(samples[probe.Out], "available/")
		a := report.Directions[probe.Out]
		if a == nil {
			return errNoAnswer
		}
		if a.Available == nil || !a.Available.Available.Known() || to <= from {
			off, width = append(off, 100), append(width, 100)
		} else {
			o := judge(a.Available.Available, truth.left(from, to))
			off, width = append(off, 100*o.off), append(width, 100*o.width)
		}
		bytes, seconds = append(bytes, float64(a.Bytes)/1e6), append(seconds, a.Seconds)
	}
	sheet := r.Sheet(bench.Ours)
	sheet.SetAll(id+"/error", off)
	sheet.SetAll(id+"/width", width)
	sheet.SetAll(id+"/bytes", bytes)
	sheet.SetAll(id+"/seconds", seconds)
	return nil
}

// peerRate is a link without other traffic: its rate for long transfers.
func peerRate(name string, rate unit.Rate, limiter *link.Bucket) bench.Case {
	id := "peers/" + name
	what, truth, others := "the capacity", float64(rate), []string{iperf3, udpstCited, pathrateCited}
	if limiter != nil {
		what, truth, others = "the token rate", float64(limiter.Rate), others[:2]
	}
	s := link.Spec{Rate: rate, Delay: 5 * time.Millisecond, Queue: link.Amount{Time: 200 * time.Millisecond}, Bucket: limiter}
	return bench.Case{
		Name: id, Claims: peerClaims(id, what, others...), Takes: bench.Takes(8*time.Second, 25*time.Second),
		Run: func(ctx context.Context, r *bench.Run) error {
			return withServer(ctx, twoHosts(s), func(on *stage) error {
				if err := on.peersRate(ctx, r, id, limiter != nil, truth); err != nil {
					return err
				}
				r.Sheet(udpstCited).Set(id+"/seconds", udpstSeconds)
				r.Sheet(udpstCited).Note(id+"/seconds", "OB-UDPST, the tool of the authors of RFC 9097: its README has 10 s as the default; it sends at the rate of the path for most of them")
				if limiter == nil {
					citePathrate(r.Sheet(pathrateCited), id, rate)
				}
				return on.peerIperf(ctx, r, id, truth)
			})
		},
	}
}

func citePathrate(s *bench.Sheet, id string, rate unit.Rate) {
	var off []float64
	for _, said := range pathrateRuns[rate] {
		off = append(off, offBy(said*1e6, float64(rate)))
	}
	s.SetAll(id+"/error", off)
	s.Note(id+"/error", "pathrate: the runs of the dissertation on its campus (3.7.2): 100 Mbit/s on a path of 100, and 970 to 990 and 1,900 to 2,100 on two of 1,000. On its testbed (3.7.1), with a path of 200 Mbit/s, it had 1,100 to 1,400")
	s.Set(id+"/seconds", pathrateSeconds)
	s.Note(id+"/seconds", "pathrate: about 15 min, from the README of version 2.4.1")
}

// peersRate measures the path as a user would who gives no options.
func (s *stage) peersRate(ctx context.Context, r *bench.Run, id string, limited bool, truth float64) error {
	var off pool
	var bytes, seconds []float64
	for range bench.Pick(r.Quick, 1, 7) {
		report, err := s.probe(ctx, "path", "--direction", "out")
		if err != nil {
			return err
		}
		a := report.Directions[probe.Out]
		if a == nil {
			return errNoAnswer
		}
		off = append(off, judge(rateOf(a, limited), truth))
		bytes, seconds = append(bytes, float64(a.Bytes)/1e6), append(seconds, a.Seconds)
	}
	sheet := r.Sheet(bench.Ours)
	sheet.SetAll(id+"/error", off.percents())
	off.noteSilent(sheet, id+"/error")
	sheet.SetAll(id+"/bytes", bytes)
	sheet.SetAll(id+"/seconds", seconds)
	return nil
}

// rateOf is the answer that is compared with the rate of a long transfer.
func rateOf(a *path.Answer, limited bool) probe.Estimate {
	switch {
	case limited && a.TokenRate != nil:
		return a.TokenRate.Rate
	case !limited && a.Capacity != nil:
		return *a.Capacity
	}
	return probe.NoEstimate("it was not measured")
}

// peerIperf sets the values of iperf3.
func (s *stage) peerIperf(ctx context.Context, r *bench.Run, id string, truth float64) error {
	return s.setIperf(ctx, r, bench.Pick(r.Quick, 3, 10), truth, id, "/error")
}
