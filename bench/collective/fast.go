package collective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// fiveShares are the shares of the five members, in sixteenths.
var fiveShares = []float64{8, 4, 2, 1, 1}

// Phases of a run: paced, greedy without counting, and counted.
const (
	fastCalm   = 12 * time.Second
	fastSettle = 5 * time.Second
	fastCount  = 10 * time.Second
	// Twenty competing flows take longer to converge.
	rivalsSettle, rivalsCount = 15 * time.Second, 30 * time.Second
	quickSettle, quickCount   = 8 * time.Second, 8 * time.Second
)

// times are the start and the end of counting.
func (c fastCase) times() (from, to time.Duration) {
	if c.rivals > 0 && c.quick {
		return fastCalm + quickSettle, fastCalm + quickSettle + quickCount
	}
	if c.rivals > 0 {
		return fastCalm + rivalsSettle, fastCalm + rivalsSettle + rivalsCount
	}
	return fastCalm + fastSettle, fastCalm + fastSettle + fastCount
}

// fastCase is five members on one link, first paced, then greedy:
//
//	server ── router ══rate, RTT══ client
type fastCase struct {
	rate    unit.Rate
	rtt     time.Duration
	control string // cubic or bbr
	queue   string // droptail, red or ecn
	byHand  bool
	rivals  int // competing greedy flows
	quick   bool
}

func (c fastCase) id() string {
	how := "learned"
	if c.byHand {
		how = "by-hand"
	}
	return fmt.Sprintf("%s/%s/%s/%s/%s", c.rate, c.rtt, c.control, c.queue, how)
}

func fastCases() (out []bench.Case) {
	n := 0
	for _, rate := range []unit.Rate{100 * unit.Mbit, unit.Gbit} {
		for _, rtt := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
			for _, control := range []string{"cubic", "bbr"} {
				for _, queue := range []string{"droptail", "red", "ecn"} {
					for _, byHand := range []bool{false, true} {
						out = append(out, fastCase{rate: rate, rtt: rtt, control: control, queue: queue, byHand: byHand}.bench(n/2))
						n++
					}
				}
			}
		}
	}
	return out
}

func (c fastCase) bench(batch int) bench.Case {
	id := "fast/" + c.id()
	alongside := ""
	if c.beside() {
		alongside = fmt.Sprint("fast/", batch)
	}
	measured := bench.Case{
		Name: id,
		Claims: []bench.Claim{
			bench.NewClaim(id, "largest deviation of a member from its proportion", proportionOff, plain, seed),
			bench.NewClaim(id+"/together", "goodput of all five", measuredOnly, plain, seed),
		},
		Takes:     func(bool) time.Duration { return c.takes(c.laws()) },
		Alongside: func(bool) string { return alongside },
		Run: func(ctx context.Context, r *bench.Run) error {
			all, err := c.runAll(ctx, c.laws())
			if err != nil {
				return err
			}
			for law, got := range all {
				sum, worst := proportion(got, fiveShares)
				sheet := r.Sheet(law)
				sheet.Set(id, 100*worst)
				sheet.Note(id, "%s: %s Mbit/s", law, mbits(got))
				sheet.Set(id+"/together", sum/1e6)
			}
			return nil
		},
	}
	if !c.smoke() {
		return unsmoked(measured)
	}
	return measured
}

// smoke reports whether the case is part of a smoke run.
func (c fastCase) smoke() bool {
	return c.rate == 100*unit.Mbit && c.rtt == 10*time.Millisecond && c.control == "cubic" && c.queue == "droptail" && !c.byHand
}

// beside reports whether the machine can run the case with all methods in parallel, and another case.
func (c fastCase) beside() bool { return c.rate <= 100*unit.Mbit }

// runAll runs the case with some methods and returns the rates of the five, by method.
func (c fastCase) runAll(ctx context.Context, laws []string) (map[string][]float64, error) {
	return runEach(laws, bench.Pick(c.beside(), len(laws), 1), func(law string) ([]float64, error) { return c.run(ctx, law) })
}

// runEach runs some methods, so many at the same time, and returns what each has, by name.
func runEach[T any](names []string, atOnce int, run func(name string) (T, error)) (map[string]T, error) {
	out := map[string]T{}
	var mu sync.Mutex
	var failed error
	for some := range slices.Chunk(names, atOnce) {
		var all sync.WaitGroup
		for _, name := range some {
			all.Go(func() {
				got, err := run(name)
				mu.Lock()
				defer mu.Unlock()
				out[name], failed = got, errors.Join(failed, err)
			})
		}
		all.Wait()
	}
	return out, failed
}

func (c fastCase) takes(laws []string) time.Duration {
	_, length := c.times()
	if c.beside() {
		return length + 3*time.Second
	}
	return time.Duration(len(laws)) * (length + 3*time.Second)
}

// proportion returns the total of some rates, and the largest deviation of one from its share.
func proportion(rates, shares []float64) (sum, worst float64) {
	all := 0.0
	for i, v := range rates {
		sum, all = sum+v, all+shares[i]
	}
	for i, v := range rates {
		worst = max(worst, math.Abs(v/(sum*shares[i]/all)-1))
	}
	return sum, worst
}

// laws returns the methods that support the case: the paper's has no configured weights.
func (c fastCase) laws() []string {
	if c.byHand {
		return []string{plain, ours}
	}
	return laws
}

func mbits(rates []float64) string {
	s := ""
	for i, v := range rates {
		if i > 0 {
			s += ", "
		}
		s += bench.Number(v / 1e6)
	}
	return s
}

func (c fastCase) topology() *lab.Topology {
	bdp := max(c.rtt, 10*time.Millisecond)
	s := link.Spec{Rate: c.rate, Queue: link.Amount{Time: bdp}}
	if c.queue != "droptail" {
		s.Queue = link.Amount{Time: 4 * bdp}
		s.RED = &link.RED{Profile: link.Profile{Min: link.Amount{Time: bdp / 2}, Max: link.Amount{Time: 2 * bdp}, Probability: 0.1}, ECN: c.queue == "ecn"}
	}
	return oneLink(s, c.rtt, c.queue == "ecn")
}

// oneLink is a link between a server, which sends, and a client, with half of the round trip each way.
func oneLink(s link.Spec, rtt time.Duration, ecn bool) *lab.Topology {
	s.Delay = rtt / 2
	// Buffers for 1 Gbit/s and 50 ms: smaller ones would limit the largest member.
	sysctl := map[string]string{"net.ipv4.tcp_ecn": "0", "net.ipv4.tcp_wmem": "4096 16384 67108864", "net.ipv4.tcp_rmem": "4096 131072 67108864"}
	if ecn {
		sysctl["net.ipv4.tcp_ecn"] = "1"
	}
	return &lab.Topology{
		Name:  lab.UniqueName("bench"),
		Nodes: []lab.NodeSpec{{Name: "server", Sysctl: sysctl}, {Name: "router", Router: true}, {Name: "client", Sysctl: sysctl}},
		Links: []lab.LinkSpec{
			{Ends: [2]string{"server", "router"}},
			{Ends: [2]string{"router", "client"}, Backend: lab.Emulator, Forward: lab.Path{Spec: s}, Back: lab.Path{Spec: link.Spec{Delay: rtt / 2}}},
		},
	}
}

// run returns the rate of each member in bit/s of payload.
func (c fastCase) run(ctx context.Context, law string) (out []float64, err error) {
	l, err := lab.Up(ctx, c.topology())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	port := nextPorts(32)
	var flows []traffic.Flow
	members := set{name: "five", scaleControl: law}
	for i, w := range fiveShares {
		calm := unit.Rate(0.8 * float64(c.rate) * w / 16)
		rule := fmt.Sprintf("dport: %d", int(port)+i)
		if c.byHand {
			calm = unit.Rate(0.8 * float64(c.rate) / 5)
			rule += fmt.Sprintf(", weight: %v", w)
		}
		members.rules = append(members.rules, rule)
		flows = append(flows, c.flow(fmt.Sprintf("m%d", i), port+uint16(i), []traffic.Step{{Rate: calm}, {At: fastCalm, Rate: traffic.Unlimited}}))
	}
	for i := range c.rivals {
		f := c.flow(fmt.Sprintf("rival%d", i), port+8+uint16(i), traffic.Constant(traffic.Unlimited))
		f.Start = fastCalm + time.Duration(i)*100*time.Millisecond
		flows = append(flows, f)
	}
	d, err := watch(ctx, members)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	from, length := c.times()
	got, err := traffic.Run(ctx, l.Host, flows, traffic.Options{Duration: length, Interval: 500 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	return rates(got, "m", len(fiveShares), from, length)
}

// rates returns what so many members, whose flows have numbers behind a prefix, had between two times, in bit/s of payload.
func rates(got *traffic.Result, prefix string, members int, from, to time.Duration) (out []float64, err error) {
	for i := range members {
		f := got.Flow(fmt.Sprint(prefix, i))
		if f.Error != "" {
			return nil, fmt.Errorf("flow %s: %s", f.Name, f.Error)
		}
		iv := f.Between(from, to)
		out = append(out, float64(iv.DeliveredBytes)*8/iv.Seconds)
	}
	return out, nil
}

func (c fastCase) flow(name string, port uint16, schedule []traffic.Step) traffic.Flow {
	return traffic.Flow{
		Name: name, From: "server", To: "client", Protocol: traffic.TCP, DstPort: port,
		Congestion: c.control, ECN: c.queue == "ecn", Schedule: schedule,
	}
}
