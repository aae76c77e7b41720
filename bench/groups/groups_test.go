package groups

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/peers"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/meter"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Every row has claims, and every claim a row (Declared checks that).
func TestEveryRowIsClaimed(t *testing.T) {
	claims, err := Bench(bench.NewDraw(1)).Declared(nil)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, c := range claims {
		row, _, _ := strings.Cut(c.ID, "/")
		count[row]++
		if c.Metric == "" || c.Unit == "" {
			t.Errorf("%s has no metric or no unit", c.ID)
		}
	}
	for _, row := range rows {
		if count[row.ID] == 0 {
			t.Errorf("row %s has no claim", row.ID)
		}
	}
}

// The cases that the targets name.
func TestNamedCases(t *testing.T) {
	claims, err := Bench(bench.NewDraw(1)).Declared(nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range claims {
		ids = append(ids, c.ID)
	}
	for _, prefix := range []string{
		"ramp-in/0.8Mbit/tcp", "ramp-in/100Mbit/tcp-cubic/", "ramp-in/100Mbit/tcp-bbr/", "ramp-in/100Mbit/udp/", "ramp-in/100Mbit/tcp-cubic-ipv6/", "ramp-in/1000Mbit/tcp",
		"ramp-out/0.8Mbit/tcp", "ramp-out/100Mbit/tcp-cubic/", "ramp-out/100Mbit/tcp-bbr/", "ramp-out/100Mbit/udp/", "ramp-out/100Mbit/tcp-cubic-ipv6/", "ramp-out/1000Mbit/tcp",
		"ramp-in/drawn-1/", "ramp-in/drawn-2/", "ramp-out/drawn-1/", "ramp-out/drawn-2/",
		"ramp-out/0.8Mbit/tcp-cubic-seed-timing/", "covetous/out/0.8Mbit/tcp-cubic-seed-timing/group2-since-the-limit-is-reached", "steady/out/0.8Mbit/tcp-cubic-seed-timing/1s", "ecn/out/0.8Mbit/tcp-cubic/", "ecn/out/100Mbit/tcp-cubic/", "ecn/in/100Mbit/tcp-cubic/",
		"covetous/out/100Mbit/udp/group2", "covetous/in/100Mbit/tcp-cubic/group3", "steady/out/0.8Mbit/tcp-cubic",
		"return/100Mbit/udp", "return/100Mbit/tcp", "return/1000Mbit/udp", "lend/100Mbit/udp", "lend/1000Mbit/tcp",
		"latency/quiet/", "latency/full/cubic-ecn-", "latency/full/cubic-no-ecn-", "latency/not-in-the-issue/cubic-ecn-10ms-path/out", "latency/not-in-the-issue/cubic-ecn-100ms-path/in", "spare/proportional/", "spare/equal/", "spare/priority/",
		"cost/one-hot-flow/", "cost/one-hot-flow-ecn/", "cost/100000-flows/", "cost/throughput/out", "cost/throughput/in",
		"scale/apply", "scale/re-rate-all", "scale/no-op-apply", "scale/clear", "scale/lost/",
		"scale/apply-of-tc", "scale/re-rate-all-of-tc",
		"wire/50Mbit/out/total", "wire/200Mbit/in/cpu", "wire/400Mbit/guest/ping", "wire/600Mbit/out/inside", "wire/900Mbit/in/", "wire/1000Mbit/guest/", "wire/2000Mbit/out/",
		"drawn/1/in/total", "drawn/20/out/worst-second", "churn/200-veths/last", "churn/200-veths/first-ten", "churn/200-veths/left",
		"nested/proportional/tcp/1-busy", "nested/equal/udp/2-busy", "nested/priority/tcp/3-busy", "nested/drawn-1",
		"inside/out/2Mbit/rtt-0.1ms/drops", "inside/in/2Mbit/rtt-100ms/unmet", "inside/out/20Mbit/rtt-10ms/at-risk", "inside/drawn-1/drops",
		"control/out/dhcp/passes", "control/in/arp/first-ping", "control/out/ack-with-options/download", "control/in/lldp/", "control/in/eapol/", "control/out/igmp/", "control/out/neighbour-discovery/",
		"ways/nft-ingress/in/there-before", "ways/nft-ingress/guest/comes-later", "ways/flowtable/in/", "ways/xdp-generic/in/", "ways/tc-before/out/", "ways/tc-after/in/", "ways/ipsec-tunnel/in/", "ways/vlan/in/",
		"ways/macvlan/in/", "ways/bridge/guest/", "ways/pppoe/in/", "ways/wireguard/in/",
		"scale/1Gbit/apply", "scale/1Gbit/re-rate-all", "scale/1Gbit/no-op-apply", "scale/1Gbit/clear", "scale/1Gbit/lost/",
	} {
		if !slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, prefix) }) {
			t.Errorf("no claim %s...", prefix)
		}
	}
}

// The paper's values are for 0.8 Mbit/s, its timing, and sending.
func TestPapersCase(t *testing.T) {
	claims, err := Bench(bench.NewDraw(1)).Declared(nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, c := range claims {
		if c.Paper != nil {
			got[c.ID] = *c.Paper
		}
	}
	const of = "out/0.8Mbit/tcp-cubic-seed-timing"
	want := map[string]float64{
		"ramp-" + of + "/group0": 109, "ramp-" + of + "/group1": 97.5, "ramp-" + of + "/group2": 100, "ramp-" + of + "/group3": 100, "ramp-" + of + "/total": 90.4,
		"covetous/" + of + "/group2": 0, "covetous/" + of + "/group3": 0,
		"covetous/" + of + "/group2-since-the-limit-is-reached": 2, "covetous/" + of + "/group3-since-the-limit-is-reached": 3,
		"steady/" + of: 0.07, "steady/" + of + "/1s": 0.44,
	}
	same := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	if !maps.EqualFunc(got, want, same) {
		t.Errorf("the paper's values are\n%v\nwant\n%v", got, want)
	}
}

// The paper's algorithm is compared in three variants: with its step and with its two remedies.
func TestQuantumVariants(t *testing.T) {
	for name, want := range map[string]group.QuantumOptions{
		quantumName: {}, fixedName: {Step: group.Step{Bytes: 1500}}, shortName: {Quantum: 250 * time.Millisecond}, overdraftName: {Overdraft: true},
	} {
		l, err := newLimiter(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.(payload).options; got != want {
			t.Errorf("%s has %+v, want %+v", name, got, want)
		}
	}
	claims, err := Bench(bench.NewDraw(1)).Declared(nil)
	if err != nil {
		t.Fatal(err)
	}
	for id, variants := range map[string][]string{
		"covetous/out/0.8Mbit/tcp-cubic-seed-timing/group3": {shortName, overdraftName}, "covetous/in/0.8Mbit/tcp-cubic/group2": {shortName, overdraftName},
		"covetous/out/100Mbit/tcp-cubic/group3": {fixedName, shortName, overdraftName}, "covetous/in/100Mbit/udp/group2": {fixedName, shortName, overdraftName},
		"lend/100Mbit/udp/out": {fixedName}, "lend/100Mbit/tcp/in": {fixedName},
	} {
		i := slices.IndexFunc(claims, func(c bench.Claim) bool { return c.ID == id })
		for _, v := range variants {
			if _, ok := claims[i].Peer[v]; !ok {
				t.Errorf("%s is not measured with %s", id, v)
			}
		}
	}
}

func TestQuickIsQuick(t *testing.T) {
	for seed := range uint64(200) {
		if took := Bench(bench.NewDraw(seed)).Takes(bench.Options{Quick: true}); took > 3*time.Minute {
			t.Errorf("with seed %d --quick takes %v by its own estimate: at most 3 minutes are allowed", seed, took)
		}
	}
}

// The paper's test, chapter V: all at 10 %, then 0, 1, 2, 3 rise to 30 % in steps of 5 %; 120 % at the
// end.
func TestShares(t *testing.T) {
	for level, want := range map[int][4]int{
		0: {10, 10, 10, 10}, 1: {15, 10, 10, 10}, 4: {30, 10, 10, 10}, 5: {30, 15, 10, 10}, 12: {30, 30, 30, 10}, 15: {30, 30, 30, 25}, 16: {30, 30, 30, 30},
	} {
		if got := shares(level); got != want {
			t.Errorf("level %d offers %v, want %v", level, got, want)
		}
	}
	c := rampCase{limit: 100 * unit.Mbit, protocol: traffic.TCP}
	full := c.timing(false)
	if full.begins() != 80*time.Second || full.ends() != 140*time.Second || full.warm() != 86*time.Second {
		t.Errorf("overload from %v to %v, counted from %v", full.begins(), full.ends(), full.warm())
	}
	for i, want := range []float64{10e6, 20e6, 30e6, 30e6} {
		if got := c.due(i); got != want {
			t.Errorf("group%d is due %v, want %v", i, got, want)
		}
	}
	for i, f := range c.flows(full) {
		steps := f.Schedule
		if len(steps) != 6 || steps[5] != (traffic.Step{At: full.ends()}) || steps[0] != (traffic.Step{Rate: 10 * unit.Mbit}) || steps[4] != (traffic.Step{At: time.Duration(4*i+4) * 5 * time.Second, Rate: 30 * unit.Mbit}) {
			t.Errorf("flow %d has the schedule %v", i, steps)
		}
	}
}

func TestVariation(t *testing.T) {
	if got := variation([]float64{2, 4, 4, 4, 5, 5, 7, 9}); math.Abs(got-2.138/5) > 1e-3 {
		t.Errorf("variation is %v", got)
	}
	if got := variation([]float64{3, 3, 3}); got != 0 {
		t.Errorf("variation of a constant is %v", got)
	}
}

// series returns arrivals at rates in Mbit/s, each for some milliseconds.
func series(parts ...struct {
	mbit float64
	ms   int
}) meter.Series {
	s := meter.Series{Bin: time.Millisecond}
	for _, p := range parts {
		for range p.ms {
			s.Bytes = append(s.Bytes, uint64(p.mbit*1e6/8/1000))
		}
	}
	return s
}

func TestReaches(t *testing.T) {
	type part = struct {
		mbit float64
		ms   int
	}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		s    meter.Series
		want time.Duration
		ok   bool
	}{
		"at once":         {series(part{0, 100}, part{40, 400}), 0, true},
		"after a while":   {series(part{0, 100}, part{20, 30}, part{40, 370}), 29 * ms, true}, // 9 of 10 ms and one at half
		"a burst is none": {series(part{0, 100}, part{40, 20}, part{10, 80}, part{40, 300}), 100 * ms, true},
		"for a moment":    {series(part{0, 100}, part{60, 150}, part{0, 250}), 400 * ms, false},
		"never":           {series(part{0, 100}, part{30, 400}), 400 * ms, false},
	} {
		got, ok := reaches(c.s, 38e6, 100*ms, 500*ms)
		if ok != c.ok || got < c.want-2*ms || got > c.want+2*ms {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, ok, c.want, c.ok)
		}
	}
}

func TestPercentile90(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{[]float64{7}, 7}, {[]float64{2, 1}, 2}, {[]float64{10, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 9}} {
		if got := percentile90(c.v); got != c.want {
			t.Errorf("the 90th percentile of %v is %v, want %v", c.v, got, c.want)
		}
	}
}

// The expected rates of share are those that a reader would compute.
func TestSpareAnswers(t *testing.T) {
	want := map[string]map[string]float64{
		"spare/proportional/10-40-of-100Mbit": {"a": 20, "b": 80},
		"spare/proportional/ceiling-binds":    {"a": 50, "b": 50},
		"spare/proportional/nested":           {"t/x": 37.5, "t/y": 37.5, "b": 25},
		"spare/equal/10-40-of-100Mbit":        {"a": 35, "b": 65},
		"spare/equal/ceiling-binds":           {"a": 20, "b": 40, "c": 40},
		"spare/priority/10-40-of-100Mbit":     {"a": 60, "b": 40},
		"spare/priority/ceiling-binds":        {"a": 30, "b": 60, "c": 10},
	}
	for _, c := range spareCases() {
		p, err := plan(c.direction(), false)
		if err != nil {
			t.Fatal(err)
		}
		var sum unit.Rate
		for i, got := range c.answer(p.Out) {
			n := p.Out.Nodes[i]
			if n.Leaf {
				sum += got
			}
			if right, ok := want[c.id()][n.Path]; ok && math.Abs(float64(got)-right*1e6) > 10 {
				t.Errorf("%s: %s gets %v, want %v Mbit/s", c.id(), n.Path, got, right)
			}
		}
		if sum > c.limit || sum < c.limit-10 {
			t.Errorf("%s allocates %v of %v", c.id(), sum, c.limit)
		}
	}
}

func TestHTBByHand(t *testing.T) {
	p, err := plan(seedGroups(100*unit.Mbit), false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := peers.HTB{Leaf: fifoLeaf}.Commands("eth0", p.Out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"qdisc add dev eth0 root handle 1: htb default 10",
		"class add dev eth0 parent 1:1 classid 1:13 htb rate 40000000bit ceil 100000000bit quantum 6056",
		"qdisc add dev eth0 parent 1:12 bfifo limit 250000",
		"filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5004 0xffff flowid 1:13",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among the commands:\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// Headgate accepts plans of 4,000 groups in both directions.
func TestScalePlans(t *testing.T) {
	for _, c := range scaleCases() {
		p, err := c.plan(scaleGroups-1, c.each)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Out.Nodes) != scaleGroups || p.In == nil {
			t.Errorf("%v: %d groups out, in is %v", c.limit, len(p.Out.Nodes), p.In != nil)
		}
	}
}

// The assigned connections differ, and every group has one.
func TestScaleAssignments(t *testing.T) {
	conns, groups := map[shaper.Conn]bool{}, map[string]bool{}
	for _, a := range scaleAssignments(scaleConns) {
		conns[a.Conn], groups[a.Group] = true, true
	}
	if len(conns) != scaleConns || len(groups) != scaleGroups-1 {
		t.Errorf("%d connections in %d groups", len(conns), len(groups))
	}
}

// For any random values, the claims have the same ids and targets, Headgate accepts the groups, and
// the total offered load exceeds the limit.
func TestDrawnRamps(t *testing.T) {
	declared := func(seed uint64) []bench.Claim {
		claims, err := Bench(bench.NewDraw(seed)).Declared(nil)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(claims, func(a, b bench.Claim) int { return strings.Compare(a.ID, b.ID) })
		return claims
	}
	want := declared(1)
	for seed := range uint64(50) {
		got := declared(seed)
		same := func(a, b bench.Claim) bool { return a.ID == b.ID && a.Target == b.Target }
		if !slices.EqualFunc(got, want, same) {
			t.Fatalf("the claims of seed %d are not those of seed 1", seed)
		}
		for _, c := range drawnRamps(bench.NewDraw(seed)) {
			if _, err := plan(groupsOf(c.limit, c.guarantees()), c.in); err != nil {
				t.Errorf("seed %d, %s: %v", seed, c.drawn, err)
			}
			due := 0.0
			for i := range c.shares {
				due += c.due(i)
			}
			if due > float64(c.limit)+4 || c.limit < 800*unit.Kbit || c.limit > unit.Gbit || c.rtt < time.Millisecond || c.rtt > 50*time.Millisecond {
				t.Errorf("seed %d, %s: due is %v", seed, c.drawn, due)
			}
		}
	}
	for _, c := range want {
		if strings.Contains(c.ID, "drawn") != (c.Drawn != "") { // in all rows
			t.Errorf("%s says that it is drawn: %q", c.ID, c.Drawn)
		}
	}
}

// Each pattern of busy leaves occurs once, and the expected rates of the leaves total the limit.
func TestNestedPatterns(t *testing.T) {
	for seed := range uint64(20) {
		for _, c := range nestedCases(bench.NewDraw(seed)) {
			p, err := plan(c.direction(), false)
			if err != nil {
				t.Fatalf("%s (%s): %v", c.name, c.drawn, err)
			}
			seen := map[string]bool{}
			for _, pattern := range c.patterns(false) {
				seen[strings.Join(pattern, " ")] = true
				var sum unit.Rate
				for i, r := range (spareCase{demand: pattern.demand()}).answer(p.Out) {
					if n := p.Out.Nodes[i]; n.Leaf {
						sum += r
						if (r > 0) != (pattern.demand()[n.Path] > 0) {
							t.Errorf("%s, %v: %s gets %v", c.name, pattern, n.Path, r)
						}
					}
				}
				if sum != c.limit {
					t.Errorf("%s, %v: %v of %v is allocated", c.name, pattern, sum, c.limit)
				}
			}
			if len(seen) != 26 {
				t.Errorf("%s has %d patterns", c.name, len(seen))
			}
			phase := 5 * time.Second
			for _, f := range c.flows(p.Out, c.patterns(false), phase) {
				on := map[int]bool{}
				for i, pattern := range c.patterns(false) {
					on[i] = pattern.demand()[f.Name] > 0
				}
				rate := unit.Rate(0)
				steps := f.Schedule
				for i := range c.patterns(false) {
					if len(steps) > 0 && steps[0].At == time.Duration(i)*phase {
						rate, steps = steps[0].Rate, steps[1:]
					}
					if (rate > 0) != on[i] {
						t.Errorf("%s: in phase %d %s offers %v", c.name, i, f.Name, rate)
					}
				}
			}
		}
	}
}

// The frames of a flood are the guest's, and both of its groups have some.
func TestDressedFrames(t *testing.T) {
	for _, kind := range dressedKinds {
		groups, long := map[byte]bool{}, false
		for _, f := range kind.frames(rand.New(rand.NewPCG(1, 1))) {
			groups[f[6]] = true
			long = long || len(f) == padded
			if f[11] != guestMark || f[6] != guestFirst[0] && f[6] != guestFirst[1] {
				t.Errorf("%s: the source address %x is not the guest's", kind.name, f[6:12])
			}
		}
		if !long || !groups[guestFirst[0]] || len(kind.make()) > 1 && !groups[guestFirst[1]] {
			t.Errorf("%s: groups %v, long frames %v", kind.name, groups, long)
		}
	}
	for _, c := range controlCases() {
		if _, err := c.plan(); err != nil {
			t.Error(err)
		}
	}
}

// Headgate accepts the plans of the rows wire and inside.
func TestWireAndInsidePlans(t *testing.T) {
	for _, limit := range wireLimits {
		for _, way := range wireWays {
			for _, name := range []string{bench.Ours, htbName} {
				p, _, err := wireCase{limit, way}.plan(name)
				if err != nil || (p.In == nil) == (p.Out == nil) {
					t.Errorf("%v %s for %s: %+v, %v", limit, way, name, p, err)
				}
			}
		}
	}
	for seed := range uint64(20) {
		for _, c := range insideCases(bench.NewDraw(seed)) {
			if _, err := c.plan(); err != nil {
				t.Errorf("%s (%s): %v", c.name, c.drawn, err)
			}
		}
	}
}
