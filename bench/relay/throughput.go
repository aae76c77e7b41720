package relay

import (
	"context"
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// throughput is one connection, as fast as it goes.
type throughput struct {
	id     string
	paths  []path
	target bench.Target
	paper  float64 // Mbit/s of the thesis; 0 is none
	peers  []method
	// single adds the claim that it is never below the best single path.
	single bool
	// streams adds the number of streams, with BBR allowed and with CUBIC alone.
	streams bool
}

const ms = time.Millisecond

func paths(all ...path) []path { return all }

// throughputCases are the rows whose value is the rate of one connection. The peers are in the order of the table.
func throughputCases() (out []bench.Case) {
	one := []method{directCUBIC, directBBR, defaultCUBIC, proxy}
	two := []method{directCUBIC, directBBR, mptcp, proxy}
	with := func(peers []method, more ...method) []method { return append(append([]method{}, peers...), more...) }
	var all []throughput
	add := func(t throughput) { all = append(all, t) }
	add(throughput{id: "long/54ms", paths: paths(path{unit.Gbit, 54 * ms, 0}), target: most95, paper: 869, peers: with(one, thesis(10, 1000, 8192))})
	add(throughput{id: "long/160ms", paths: paths(path{unit.Gbit, 160 * ms, 0}), target: most95, paper: 788, peers: with(one, thesis(20, 1000, 8192))})
	// Where a relay cannot help: the price is in the note, and in direct CUBIC's figure.
	add(throughput{id: "long/2ms", paths: paths(path{unit.Gbit, 2 * ms, 0}), target: shown, peers: one})
	add(throughput{id: "two-paths/500Mbit", paths: paths(path{500 * unit.Mbit, 54 * ms, 0}, path{500 * unit.Mbit, 160 * ms, 0}), target: most90, paper: 703, peers: with(two, thesis(20, 1000, 8192))})
	for n, rtt := range []time.Duration{25, 50, 100, 200, 400} {
		add(throughput{
			id: fmt.Sprintf("delay/25-%dms", rtt), paths: paths(path{300 * unit.Mbit, 25 * ms, 0}, path{300 * unit.Mbit, rtt * ms, 0}),
			target: most95, paper: []float64{585, 572, 541, 390, 278}[n], peers: with(two, thesis(6, 1000, 8192)), single: true,
		})
	}
	for n, rate := range []unit.Rate{100, 200, 300, 400, 500} {
		best := []int{10, 10, 10, 8, 8}[n]
		add(throughput{
			id: fmt.Sprintf("rate/100-%dMbit", rate), paths: paths(path{100 * unit.Mbit, 25 * ms, 0}, path{rate * unit.Mbit, 25 * ms, 0}),
			target: most95, paper: []float64{196, 294, 385, 472, 547}[n], peers: with(two, thesis(best, 10_000, 8192)),
		})
	}
	for n, loss := range []float64{1, 0.1, 0.01} {
		c := throughput{
			id: fmt.Sprintf("loss/%g%%", loss), paths: paths(path{unit.Gbit, 25 * ms, loss / 100}),
			target: most90, peers: with(one, thesis(100, 1000, 8192)), streams: true,
		}
		if n == 0 {
			c.paper = 874
		}
		add(c)
	}
	add(throughput{id: "uneven/20-300Mbit", paths: paths(path{20 * unit.Mbit, 25 * ms, 0}, path{300 * unit.Mbit, 25 * ms, 0}), target: most95, paper: 111, peers: with(two, thesis(20, 1000, 8192))})
	add(throughput{id: "far/600ms", paths: paths(path{100 * unit.Mbit, 600 * ms, 0}), target: most90, peers: with(one, thesis(10, 1000, 8192))})
	for n, c := range all {
		one := c.bench()
		// A smoke run measures two fast cases, or three others, at a time.
		together := 3
		if sum(c.paths) >= unit.Gbit {
			together = 2
		}
		one.Alongside = func(quick bool) string {
			return bench.Pick(quick, fmt.Sprintf("%d at a time, %d", together, n/together), "")
		}
		out = append(out, one)
	}
	return out
}

// onlyCUBIC is the relay whose streams have CUBIC.
var onlyCUBIC = relayed("headgate, CUBIC alone", agentOptions{path: "congestion: cubic"})

func (c throughput) bench() bench.Case {
	var names []string
	for _, p := range c.peers {
		names = append(names, p.name)
	}
	claim := bench.NewClaim(c.id, "goodput as full frames, 10 to 40 s", c.target, names...)
	if c.paper > 0 {
		claim = claim.WithPaper(100 * c.paper * 1e6 / float64(sum(c.paths)))
	}
	claims := []bench.Claim{claim}
	if c.single {
		claims = append(claims, bench.NewClaim(c.id+"/single", "of direct CUBIC's or BBR's on one of the paths", single))
	}
	if c.streams {
		claims = append(claims, bench.NewClaim(c.id+"/streams", "streams at the end, BBR allowed", fewest), bench.NewClaim(c.id+"/streams-cubic", "streams at the end, CUBIC alone", counted))
	}
	return bench.Case{
		Name: c.id, Claims: claims, Run: c.run,
		Takes: func(quick bool) time.Duration {
			n := len(c.peers) + 1
			if c.single {
				n++
			}
			if c.streams {
				n++
			}
			if quick {
				return length(quick) + 4*time.Second
			}
			return time.Duration(n) * (length(quick) + 5*time.Second)
		},
	}
}

// steady is when the steady state begins, and length how long a connection is measured.
func steady(quick bool) time.Duration { return bench.Pick(quick, time.Second, 10*time.Second) }
func length(quick bool) time.Duration { return bench.Pick(quick, 3*time.Second, 40*time.Second) }

// measure returns the rate of one connection by a method, in the steady state and from the first second on.
func (c throughput) measure(ctx context.Context, m method, quick bool) (rate, all float64, u usage, err error) {
	flow := greedy(m.congestion)
	if m.mptcp {
		flow.From, flow.To, flow.MPTCP = entry, exit, true
	}
	r, u, err := trial{paths: c.paths, method: m, flows: []traffic.Flow{flow}, length: length(quick)}.run(ctx)
	if err != nil {
		return 0, 0, u, fmt.Errorf("%s: %w", m.name, err)
	}
	f := r.Flow("f")
	return f.Between(steady(quick), length(quick)).DeliveredRate(), f.Total.DeliveredRate(), u, nil
}

func (c throughput) run(ctx context.Context, r *bench.Run) error {
	whole := float64(sum(c.paths))
	best := 0.0
	measure := func(m method) (float64, usage) {
		rate, all, u, err := c.measure(ctx, m, r.Quick)
		sheet := r.Sheet(m.name)
		if err != nil {
			sheet.Fail(err)
			return 0, u
		}
		sheet.Set(c.id, 100*rate/whole)
		sheet.Keep("bit_s", map[string]float64{"steady": rate, "all": all, "cpu_s": u.cpu})
		if m.name == bench.Ours {
			sheet.Note(c.id, "%s %% from the first second on; %d streams, %s processors for both agents", bench.Number(100*all/whole), u.streams, bench.Number(u.cpu/length(r.Quick).Seconds()))
		}
		return rate, u
	}
	mine, used := measure(ours)
	sheet := r.Sheet(bench.Ours)
	if c.streams && mine > 0 {
		sheet.Set(c.id+"/streams", float64(used.streams))
	}
	if r.Quick && !r.Few {
		return ctx.Err()
	}
	for _, p := range c.peers {
		rate, _ := measure(p)
		if p.name == directCUBIC.name || p.name == directBBR.name {
			best = max(best, rate)
		}
	}
	if c.single && mine > 0 && best > 0 {
		sheet.Set(c.id+"/single", 100*mine/best)
	}
	if c.streams {
		rate, _, u, err := c.measure(ctx, onlyCUBIC, r.Quick)
		if err != nil {
			return err
		}
		sheet.Set(c.id+"/streams-cubic", float64(u.streams))
		sheet.Note(c.id+"/streams-cubic", "they deliver %s %% of the rate", bench.Number(100*rate/whole))
	}
	return ctx.Err()
}

// slowBatch are the cases that a smoke run measures together, because they load the machine little.
func slowBatch(quick bool) string { return bench.Pick(quick, "slow", "") }
