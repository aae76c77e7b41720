package collective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/lab/traffic"
)

// beside is how many of the paper's cases run in parallel. One uses a quarter of two processors with
// all methods, and half as much again while FTP starts.
const beside = 3

// draws is the number of random arrival sequences of each of the paper's cases.
const draws = 3

// seedCases returns all cases of the paper.
func seedCases(d *bench.Draw) (out []bench.Case) {
	var all []seedCase
	for _, control := range []string{"reno", "cubic"} {
		for _, queue := range []string{"full", "half", "double"} {
			for _, marks := range []string{"af31-af21", "af21", "af31", "af11-af31"} {
				for _, ftp := range []int{8, 4, 2} {
					all = append(all, seedCase{queue: queue, ftp: ftp, marks: marks, control: control})
				}
			}
		}
	}
	for i, c := range all {
		out = append(out, c.bench(fmt.Sprint(i/beside), d.Seed()))
	}
	return out
}

func (c seedCase) bench(batch string, drawn uint64) bench.Case {
	id := c.id()
	claims := []bench.Claim{
		bench.NewClaim("ratio/"+id, "ratio DB1:DB2, deviation from the offered ratio", ratioOff, plain, seed),
		bench.NewClaim("ratio/"+id+"/carried", "rate of both databases", measuredOnly, plain, seed),
		bench.NewClaim("carried/"+id, "what both databases carry, of plain TCP's", bench.Pick(c.ftp == 8, carriedHeavy, carriedLight), seed),
		bench.NewClaim("losses/"+id, "retransmissions of both databases", c.allowed(), plain, seed),
		bench.NewClaim("recover/"+id+"/rate", "rate of the database that recovered less, 5 s after the congestion", recovered, plain, seed),
		bench.NewClaim("recover/"+id+"/caps", "time until all caps are removed", released, seed),
	}
	if c.ftp == 8 {
		claims = append(claims, bench.NewClaim("smooth/"+id, "variation of DB1's rate minus that of its offered load", variation, seed))
	}
	if c.figures() {
		for _, of := range figureClaims {
			claims = append(claims, bench.NewClaim("paper/"+id+"/"+of.name, of.what, of.aim, plain, seed))
		}
	}
	measured := bench.Case{
		Name: "seed/" + id, Claims: claims, Runs: draws,
		Takes:     func(quick bool) time.Duration { return timesOf(quick).takes() },
		Alongside: func(quick bool) string { return alongside(quick, "seed/"+batch) },
		Run: func(ctx context.Context, r *bench.Run) error {
			c.times = timesOf(r.Quick)
			return c.measure(ctx, r, drawn)
		},
	}
	if !c.smoke() {
		return unsmoked(measured)
	}
	return measured
}

// alongside returns the batch of a case of the paper's network: in a smoke run all are in one.
func alongside(quick bool, batch string) string {
	if quick {
		return "smoke"
	}
	return batch
}

// smoke reports whether the case is part of a smoke run: those of the paper's figures 3 to 14 are.
func (c seedCase) smoke() bool {
	return c.queue == "full" && c.marks == "af31-af21" && c.control == "reno" && c.ftp >= 4
}

// unsmoked omits a case from a smoke run.
func unsmoked(c bench.Case) bench.Case {
	takes, run := c.Takes, c.Run
	c.Takes = func(quick bool) time.Duration {
		if quick {
			return 0
		}
		return takes(quick)
	}
	c.Run = func(ctx context.Context, r *bench.Run) error {
		if r.Quick {
			return errNotSmoked
		}
		return run(ctx, r)
	}
	return c
}

// errNotSmoked is the error of a case that a smoke run omits.
var errNotSmoked = errors.New("not part of a smoke run: run without --quick")

// quiet reports whether the case must have no loss (targets.go).
func (c seedCase) quiet() bool {
	return c.queue == "full" && c.ftp == 4 && c.marks == "af31-af21"
}

func (c seedCase) allowed() bench.Target {
	if c.quiet() {
		return resentNone
	}
	return resentPart
}

// measure runs the case with all methods in parallel, with the same arrivals.
func (c seedCase) measure(ctx context.Context, r *bench.Run, drawn uint64) error {
	got, err := runEach(laws, len(laws), func(law string) (*seedRun, error) { return c.run(ctx, law, drawn+uint64(r.N)) })
	if err != nil {
		return err
	}
	if c.smoke() {
		c.plot(r, got)
	}
	base := got[plain]
	for _, law := range laws {
		run, sheet, id := got[law], r.Sheet(law), c.id()
		sheet.Set("ratio/"+id, 100*math.Abs(run.ratio()/run.offeredRatio()-1))
		sheet.Note("ratio/"+id, "%s: ratio %.2f, offered %.2f, offered before the congestion %.2f; %.2f and %.2f Mbit/s, FTP %.2f", law, run.ratio(), run.offeredRatio(), run.offeredUntil(c.times.ftp), run.carried("db1")/1e6, run.carried("db2")/1e6, run.carried("ftp")/1e6)
		sheet.Set("ratio/"+id+"/carried", run.databases()/1e6)
		if law != plain {
			sheet.Set("carried/"+id, 100*run.databases()/base.databases())
		}
		n, segments := run.resent()
		switch {
		case c.quiet():
			sheet.Set("losses/"+id, float64(n))
		default:
			was, _ := base.resent()
			sheet.Set("losses/"+id, float64(n)/c.mayResend(float64(was), segments))
		}
		sheet.Note("losses/"+id, "%s: %d of %.0f segments", law, n, segments)
		sheet.Set("recover/"+id+"/rate", 100*run.recovered())
		if law != plain {
			gone, ok := run.capsGone()
			if ok {
				sheet.Set("recover/"+id+"/caps", gone.Seconds())
			} else {
				sheet.Set("recover/"+id+"/caps", (c.times.end - c.times.quiet).Seconds())
				sheet.Note("recover/"+id+"/caps", "%s: there were still caps at the end", law)
			}
			if c.ftp == 8 {
				sheet.Set("smooth/"+id, run.roughness()/base.roughness())
			}
		}
		if c.figures() {
			for _, of := range figureClaims {
				sheet.Set("paper/"+id+"/"+of.name, of.value(run))
			}
		}
		if r.Few || c.smoke() && r.N == 0 {
			sheet.Keep("run", run.series())
		}
	}
	return nil
}

// mayResend returns the number of retransmitted segments that the target allows.
func (c seedCase) mayResend(plain, segments float64) float64 {
	part := 0.2
	if c.queue == "half" || c.marks == "af21" || c.marks == "af31" {
		part = 0.5
	}
	return max(part*plain, 0.001*segments)
}

// minute returns the congested minute.
func (s *seedRun) minute(flow string) traffic.Interval {
	return s.Flow(flow).Between(s.times.ftp, s.times.quiet)
}

func (s *seedRun) carried(flow string) float64 { return s.minute(flow).DeliveredRate() }

// databases returns what both databases carried.
func (s *seedRun) databases() float64 { return s.carried("db1") + s.carried("db2") }

func (s *seedRun) ratio() float64 { return s.carried("db1") / s.carried("db2") }

// offeredRatio returns the ratio of the load offered until the end of the congestion. In one of five
// of 400 random sequences it differs by more than 5 % from the ratio before the congestion, which is
// all that can be learned.
func (s *seedRun) offeredRatio() float64 { return s.offeredUntil(s.times.quiet) }

func (s *seedRun) offeredUntil(end time.Duration) float64 {
	offered := func(f string) float64 { return s.Flow(f).Between(s.times.db, end).OfferedL2Bits }
	return offered("db1") / offered("db2")
}

// resent returns the retransmissions of both databases in the congested minute, and the number of
// segments.
func (s *seedRun) resent() (n uint64, segments float64) {
	for _, f := range []string{"db1", "db2"} {
		m := s.minute(f)
		n += m.Retransmits
		segments += float64(m.DeliveredBytes) / float64(s.Flow(f).PayloadBytes)
	}
	return n, segments
}

// recovered returns the rate from 5 s after the congestion on, relative to that before it, of the
// database with the lower value.
func (s *seedRun) recovered() float64 {
	lowest := math.Inf(1)
	for _, f := range []string{"db1", "db2"} {
		before := s.Flow(f).Between(s.times.db+time.Second, s.times.ftp).DeliveredRate()
		after := s.Flow(f).Between(s.times.quiet+5*time.Second, s.times.quiet+15*time.Second).DeliveredRate()
		lowest = min(lowest, after/before)
	}
	return lowest
}

// capsGone returns the time from the end of the congestion until the last cap is removed for good.
func (s *seedRun) capsGone() (last time.Duration, ok bool) {
	for _, state := range s.states {
		at := state.At - time.Duration(s.StartMonotonicNs) - s.times.quiet
		if at > 0 && slices.ContainsFunc(state.Connections, func(c connection) bool { return c.Window > 0 || c.Pace > 0 }) {
			last = at
		}
	}
	return last, s.times.end-s.times.quiet-last > time.Second
}

// roughness returns how much DB1's rate varies over half-seconds, relative to its mean, minus the
// variation of its offered load.
func (s *seedRun) roughness() float64 {
	var got, offered []float64
	for _, iv := range s.Flow("db1").Intervals {
		if iv.StartSeconds >= s.times.ftp.Seconds()+5 && iv.StartSeconds < s.times.quiet.Seconds()-0.1 {
			got, offered = append(got, iv.DeliveredRate()), append(offered, iv.OfferedRate())
		}
	}
	return math.Sqrt(max(variance(got)-variance(offered), 0))
}

// variance returns the variance of the values, relative to their mean.
func variance(v []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range v {
		sum, squares = sum+x, squares+x*x
	}
	n := float64(len(v))
	mean := sum / n
	return squares/n/(mean*mean) - 1
}

type connection = host.ConnectionState

// series returns a run's rates over time, for plots and for analysis.
type series struct {
	Seconds []float64            `json:"s"`
	Mbit    map[string][]float64 `json:"mbit"`
	Resent  map[string][]uint64  `json:"resent"`
	RTT     map[string][]float64 `json:"rtt_ms"`
	Caps    []capsAt             `json:"caps"`
}

type capsAt struct {
	Seconds     float64   `json:"s"`
	Controlling bool      `json:"controlling"`
	Pace        []float64 `json:"pace_mbit"`
	Window      []uint64  `json:"window"`
	Needs       []float64 `json:"needs_mbit"`
	Base        []float64 `json:"base_rtt_ms"`
}

func (s *seedRun) series() (out series) {
	out.Mbit, out.Resent, out.RTT = map[string][]float64{}, map[string][]uint64{}, map[string][]float64{}
	for i, f := range s.Flows {
		for _, iv := range f.Intervals {
			if i == 0 {
				out.Seconds = append(out.Seconds, iv.StartSeconds)
			}
			out.Mbit[f.Name] = append(out.Mbit[f.Name], iv.DeliveredRate()/1e6)
			out.Resent[f.Name] = append(out.Resent[f.Name], iv.Retransmits)
			out.RTT[f.Name] = append(out.RTT[f.Name], float64(iv.SRTTus)/1e3)
		}
	}
	for _, state := range s.states {
		at := capsAt{Seconds: (state.At - time.Duration(s.StartMonotonicNs)).Seconds(), Controlling: state.Controlling}
		for _, c := range state.Connections {
			at.Pace = append(at.Pace, float64(c.Pace)/1e6)
			at.Window = append(at.Window, uint64(c.Window))
			at.Needs = append(at.Needs, float64(c.Needs)/1e6)
			at.Base = append(at.Base, c.BaseRTT.Seconds()*1e3)
		}
		out.Caps = append(out.Caps, at)
	}
	return out
}
