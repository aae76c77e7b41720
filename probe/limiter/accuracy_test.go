package limiter_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// limited is a path with one limiter, and its parameters.
type limited struct {
	sim.Path
	class limiter.Class
	// what names a variant of a class.
	what string
	// Token buckets have rate and size, ticks have interval (ns) and packets, schedules
	// have the active and sleeping periods (ns).
	rate, size, interval, packets, active, sleeping float64
	// capacity is that of the narrow link.
	capacity float64
	cross    float64
	loss     float64
	stalls   int // stalls of a processor during the run
}

var classes = []limiter.Class{limiter.TBF, limiter.Xen, limiter.Scheduling, limiter.Policer, limiter.CPU, limiter.None}

func logDraw(rng *rand.Rand, from, to float64) float64 {
	return from * math.Pow(to/from, rng.Float64())
}

// drawLimited draws a path of one class. The rate of a limiter is at most 0.8 of what
// each link has available, so that the limiter is the bottleneck.
func drawLimited(rng *rand.Rand, class limiter.Class) limited {
	for {
		if p, ok := tryLimited(rng, class); ok {
			return p
		}
	}
}

func tryLimited(rng *rand.Rand, class limiter.Class) (p limited, ok bool) {
	p.class = class
	p.Noise = time.Duration(500 + rng.IntN(500))
	p.Skew = (2*rng.Float64() - 1) * 5e-5
	p.Work = time.Duration(700 + rng.IntN(400))
	if rng.IntN(3) > 0 {
		p.cross = rng.Float64() / 2
	}
	left := math.Inf(1) // available bandwidth of the narrowest link
	hops := 1 + rng.IntN(4)
	p.capacity = math.Inf(1)
	for range hops {
		c := logDraw(rng, 1e9, 10e9)
		hop := link.Spec{Rate: unit.Rate(c), Delay: time.Duration(logDraw(rng, 20e3, 10e6)), Queue: drawQueue(rng)}
		if p.cross > 0 {
			hop.Cross = simtest.Pareto(p.cross * c)
		}
		left, p.capacity = min(left, c*(1-p.cross)), min(p.capacity, c)
		p.Hops = append(p.Hops, hop)
	}
	if rng.IntN(4) == 0 {
		p.loss = rng.Float64() * 0.05
		p.Hops[rng.IntN(hops)].Loss.Probability = p.loss
	}
	if rng.IntN(3) == 0 {
		p.stalls = 1 + rng.IntN(2)
	}
	at := &p.Hops[rng.IntN(hops)]
	limit := func(rate float64) bool {
		p.rate = rate
		if p.cross > 0 {
			at.Cross = simtest.Pareto(p.cross * rate)
		}
		return rate <= 0.8*left
	}
	bucket := func(police bool) bool {
		at.Bucket = &link.Bucket{Rate: unit.Rate(p.rate), Size: unit.Bytes(p.size), Police: police}
		// The budget suffices to empty it.
		return p.size/(1-p.rate/left) < 1.5e6
	}
	last := &p.Hops[hops-1]
	suspend := func(n, t float64) {
		last.Suspension = &link.Suspension{Packets: int(n), Time: time.Duration(t)}
	}
	switch class {
	case limiter.TBF:
		p.size = logDraw(rng, 1600, 1e6)
		ok = limit(logDraw(rng, 50e6, 2000e6)) && bucket(false)
	case limiter.Policer:
		p.size = logDraw(rng, 10e3, 500e3)
		ok = limit(logDraw(rng, 20e6, 1000e6)) && bucket(true)
	case limiter.Xen:
		p.interval, p.packets = logDraw(rng, 1e6, 50e6), logDraw(rng, 2, 300)
		at.Xen = &link.Xen{Interval: time.Duration(p.interval), Tokens: unit.Bytes(p.packets * 1514)}
		ok = limit(float64(at.Xen.Rate()))
	case limiter.CPU:
		p.rate = logDraw(rng, 50e6, 900e6)
		p.Work = time.Duration(1514 * 8e9 / p.rate)
		ok = p.rate <= 0.8*left
	case limiter.None:
		p.what = "free"
		ok = true
		if rng.IntN(4) == 0 {
			p.what = "unmet"
			p.size = logDraw(rng, 6e6, 100e6)
			ok = limit(logDraw(rng, 50e6, 2000e6))
			bucket(false)
		}
	case limiter.Scheduling:
		ok = true
		if rng.IntN(2) == 0 {
			p.what = "sender"
			p.active, p.sleeping = logDraw(rng, 0.5e6, 30e6), logDraw(rng, 0.4e6, 120e6)
			p.Work = time.Duration(logDraw(rng, 700, 8000))
			p.Sleep = link.Active{On: time.Duration(p.active), Off: time.Duration(p.sleeping)}
		} else {
			p.what = "receiver"
			p.packets, p.sleeping = math.Floor(logDraw(rng, 50, 1000)), logDraw(rng, 0.4e6, 30e6)
			suspend(p.packets, p.sleeping)
		}
	}
	// A queue holds at least a hundred packets.
	for i := range p.Hops {
		if h := &p.Hops[i]; h.Queue.Time == shortQueue && float64(h.Slowest())*shortQueue.Seconds() < 100*1514*8 {
			h.Queue = link.Amount{Segments: 100}
		}
	}
	if (class == limiter.TBF || class == limiter.Policer) && rng.IntN(8) == 0 {
		n, t := logDraw(rng, 100, 1000), logDraw(rng, 0.4e6, 5e6)
		if n*1514*8e9/t > 3*p.rate {
			p.what = "suspended"
			suspend(n, t)
		}
	}
	return p, ok
}

const shortQueue = 50 * time.Millisecond

func drawQueue(rng *rand.Rand) link.Amount {
	switch rng.IntN(4) {
	case 0:
		return link.Amount{Segments: int(logDraw(rng, 100, 2000))}
	case 1:
		return link.Amount{Time: shortQueue}
	}
	return simtest.UnboundedQueue
}

// host sends over a path whose ends have processors that sometimes stall.
type host struct {
	*sim.Network
	rng    *rand.Rand
	stalls map[int]bool // by index of the train
	sent   int
}

func newHost(p *limited, seed uint64) *host {
	h := &host{Network: sim.New(p.Path, seed), rng: rand.New(rand.NewPCG(seed, 5)), stalls: map[int]bool{}}
	for range p.stalls {
		h.stalls[h.rng.IntN(8)] = true
	}
	return h
}

func (h *host) Send(t probe.Train) probe.Sample {
	h.sent++
	if !h.stalls[h.sent-1] || len(t.Parts) > 1 {
		return h.Network.Send(t)
	}
	length := time.Duration(logDraw(h.rng, 1e6, 11e6))
	if h.rng.IntN(2) == 0 {
		part := t.Parts[0]
		begin := 1 + h.rng.IntN(part.Count-1)
		first, second := part, part
		first.Count, second.Count, second.Pause = begin, part.Count-begin, length
		s := h.Network.Send(probe.Train{Parts: []probe.Part{first, second}})
		s.Train = t
		return s
	}
	s := h.Network.Send(t)
	if len(s.Arrived) > 0 {
		from := s.Arrived[h.rng.IntN(len(s.Arrived))].At
		for i, a := range s.Arrived {
			if to := from + int64(length); a.At >= from && a.At < to {
				s.Arrived[i].At = to
			}
		}
	}
	return s
}

// runLimited lets a method send over a path until it has enough samples.
func runLimited(t *testing.T, p *limited, seed uint64, m limiter.Detector) (samples []probe.Sample, bytes unit.Bytes) {
	t.Helper()
	h := newHost(p, seed)
	for range 40 {
		train, ok := m.Next(samples)
		if !ok {
			return samples, bytes
		}
		bytes += train.Bytes()
		samples = append(samples, h.Send(train))
	}
	t.Fatalf("the method does not terminate on %+v", p)
	return nil, 0
}

func (p *limited) String() string {
	return fmt.Sprintf("%s %s R %.0f b %.0f T %.2f n %.1f A %.2f S %.2f C %.0f hops %d cross %.2f loss %.3f stalls %d work %v",
		p.class, p.what, p.rate/1e6, p.size, p.interval/1e6, p.packets, p.active/1e6, p.sleeping/1e6, p.capacity/1e6, len(p.Hops), p.cross, p.loss, p.stalls, p.Work)
}

func quantileOf(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

// limiterPaths is the number of random paths of each class.
const limiterPaths = 25

// On random paths of every class at least 95 % are detected, and the errors of T and
// delta are within 5 % at p90.
func TestLimiter(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	confusion := map[[2]limiter.Class]int{}
	errors := map[string][]float64{}
	covered := map[string]int{}
	widths := map[string][]float64{}
	var spent []float64
	check := func(what string, e probe.Estimate, truth float64) {
		if !e.Known() {
			return
		}
		errors[what] = append(errors[what], math.Abs(e.Value/truth-1))
		if !e.AtLeast {
			widths[what] = append(widths[what], (e.High-e.Low)/2/truth)
		}
		if e.Low <= truth && truth <= e.High || e.AtLeast && e.Low <= truth {
			covered[what]++
		}
	}
	for _, class := range classes {
		for i := range limiterPaths {
			p := drawLimited(rng, class)
			m := limiter.Detector{}
			samples, bytes := runLimited(t, &p, uint64(i)+1, m)
			if bytes > 5_000_000 {
				t.Errorf("%d bytes were sent on %v", bytes, &p)
			}
			spent = append(spent, float64(bytes))
			r := m.Estimate(samples)
			confusion[[2]limiter.Class{class, r.Class}]++
			if r.Class != class {
				t.Logf("%v: detected %s%s (%s)", &p, r.Class, r.Cannot, r.Why)
				continue
			}
			what := string(class) + " "
			if p.cross > 0 {
				what = "shared " + what
			}
			if b := r.Bucket; b != nil {
				check(what+"R", b.Rate, p.rate)
				check(what+"b", b.Size, p.size)
			}
			if x := r.Ticks; x != nil {
				check("T", x.Interval, p.interval)
				check("delta", x.Packets, p.packets)
			}
			if class == limiter.Scheduling {
				for _, s := range r.Schedules {
					if string(s.At) == p.what {
						check("S "+p.what, s.Sleeping, p.sleeping)
						if p.active > 0 {
							check("A", s.Active, p.active)
						} else {
							check("N", s.Packets, p.packets)
						}
					}
				}
			}
			if r.Rate != nil {
				check("cpu rate", *r.Rate, p.rate)
			}
		}
	}
	out := fmt.Sprintf("%-14s", "")
	for _, said := range classes {
		out += fmt.Sprintf("%14s", said)
	}
	out += "   cannot  recall\n"
	for _, class := range classes {
		out += fmt.Sprintf("%-14s", class)
		for _, said := range classes {
			out += fmt.Sprintf("%14d", confusion[[2]limiter.Class{class, said}])
		}
		recall := float64(confusion[[2]limiter.Class{class, class}]) / limiterPaths
		if recall < 0.95 {
			t.Errorf("%.1f %% of class %s are detected", 100*recall, class)
		}
		out += fmt.Sprintf("%9d%7.1f%%\n", confusion[[2]limiter.Class{class, ""}], 100*recall)
	}
	var names []string
	for what := range errors {
		names = append(names, what)
	}
	slices.Sort(names)
	for _, what := range names {
		e, w := errors[what], widths[what]
		slices.Sort(e)
		if p90 := e[len(e)*9/10]; (what == "T" || what == "delta") && p90 > 0.05 {
			t.Errorf("%s: error %.1f %% at p90", what, 100*p90)
		}
		out += fmt.Sprintf("%-20s n %4d  median %6.3f%%  p90 %6.3f%%  covered %5.1f%%  half-width %6.3f%%\n", what, len(e), 100*e[len(e)/2], 100*e[len(e)*9/10], 100*float64(covered[what])/float64(len(e)), 100*quantileOf(w, 0.5))
	}
	slices.Sort(spent)
	t.Logf("\n%s%.0f bytes were sent at the median", out, spent[len(spent)/2])
}
