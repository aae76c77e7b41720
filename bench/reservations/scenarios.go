package reservations

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/share/sharetest"
	"headgate.dev/headgate/unit"
)

// method is a scheme with the queues that it needs at the bottleneck (reservations, section 4.2).
type method struct {
	name, scheme string
	// queues are the classes of each queue; nil is a FIFO.
	queues [][]int
	// without reserves nothing: the queues alone divide the link.
	without bool
}

var (
	thesisMethod = method{name: "adaptive (thesis)", scheme: "thesis"}
	staticMethod = method{name: "static meters", scheme: "static"}
	queueMethod  = method{name: "queues", scheme: "queues", queues: sharetest.DiffServ.Classes, without: true}
	hybridMethod = method{name: "hybrid", scheme: "hybrid", queues: sharetest.Hybrid.Classes}
	ourMethod    = method{name: bench.Ours}
	// peers are in the order in which they are measured: queues first, which others are compared with.
	peers = []method{queueMethod, thesisMethod, staticMethod, hybridMethod}
)

func namesOf(methods []method) (all []string) {
	for _, m := range methods {
		all = append(all, m.name)
	}
	return all
}

// Gains of the paper over queues, and the change of the total (reservations, section 5.2), in percent.
const paperRandom20, paperControlled50, paperTotal = 4.40, 18.57, -2.4

// slow and fast are the factors of the rates: links of 5 and of 100 Mbit/s.
const slow, fast = 1, 20

// scenario is a case: one of the tables 4.1 to 4.4 with controlled or random rates.
type scenario struct {
	row      string // of its claims: scenarios or routers
	table    sharetest.Scenario
	random   bool
	factor   unit.Rate
	protocol traffic.Protocol
	seed     uint64
	methods  []method // beside ours
	// varying are senders whose rates vary by sendersVary.
	varying bool
}

// sendersVary is the standard deviation of what a sender offers in a second. The senders of the paper varied (section 5.1.3), and it does not say by how
// much: with 7 % its algorithm has all of its numbers in the fluid model (TestThesisWithNoise), and with exact senders it gains 26 % instead of 18.57.
const sendersVary = 0.07

func (s scenario) id() string {
	return fmt.Sprintf("%s/%s/%dMbit/%d/%s%s", s.row, s.protocol, s.factor*sharetest.LinkRate/unit.Mbit, s.table.Unreserved, bench.Pick(s.random, "random", "controlled"), bench.Pick(s.varying, "/varying", ""))
}

// interval is how long a rate is kept.
func (s scenario) interval(quick bool) time.Duration {
	return bench.Pick(s.varying, time.Second, interval(quick))
}

// interval is how long a flow keeps its rate: as in the paper (section 4.3) in the full benchmark.
func interval(quick bool) time.Duration { return bench.Pick(quick, 3*time.Second, 10*time.Second) }

// rates returns what the flows offer, by interval and flow.
func (s scenario) rates(quick bool) [][]unit.Rate {
	all := s.exact(quick)
	if s.varying {
		return sharetest.Noisy(all, int(interval(quick)/time.Second), sendersVary, s.seed)
	}
	return all
}

// exact returns what flows offer that do not vary. A random trial with UDP at 5 Mbit/s has the paper's 30 intervals, one at 100 Mbit/s 5, and others 10.
func (s scenario) exact(quick bool) [][]unit.Rate {
	table := s.table.At(s.factor)
	if !s.random {
		all := table.Controlled()
		return all[:bench.Pick(quick, 6, len(all))]
	}
	all := table.Random(s.seed)
	switch {
	case quick:
		return all[:6]
	case s.factor == fast:
		return all[:5]
	case s.row == "routers" || s.protocol == traffic.TCP:
		return all[:10]
	}
	return all
}

func scenarioCases(d *bench.Draw) (all []bench.Case) {
	for _, p := range []traffic.Protocol{traffic.UDP, traffic.TCP} {
		for _, factor := range []unit.Rate{slow, fast} {
			for _, table := range sharetest.Scenarios {
				for _, random := range []bool{false, true} {
					s := scenario{row: "scenarios", table: table, random: random, factor: factor, protocol: p, seed: d.Seed(), methods: peers}
					if factor == fast {
						s.methods = []method{queueMethod} // the methods one after the other take 10 min for each case
					}
					all = append(all, s.benchCase())
					if s.varying = s.slowUDP() && s.paperGain() > 0; s.varying {
						s.methods = []method{queueMethod, thesisMethod}
						all = append(all, s.benchCase())
					}
				}
			}
		}
	}
	return all
}

func (s scenario) benchCase() bench.Case {
	names := namesOf(s.methods)
	id := s.id()
	target := bench.Pick(s.varying, bench.Target{Op: bench.Measured, Unit: "%"}, ofIdeal)
	c := bench.Case{
		Name: id, Run: s.run, Claims: []bench.Claim{
			bench.NewClaim(id+"/qos", "what the QoS flows got, of what an oracle gives them that knows the offered rates", target, names...),
			bench.NewClaim(id+"/total", "what all flows got, of what this oracle gives them", target, names...),
		},
		Takes: func(quick bool) time.Duration {
			if quick && !s.smoke() {
				return 0
			}
			each := time.Duration(len(s.rates(quick)))*s.interval(quick) + 15*time.Second
			if !s.together() {
				each *= time.Duration(len(s.methods) + 1)
			}
			return each
		},
		Alongside: s.alongside,
	}
	if s.random {
		c.Drawn = fmt.Sprintf("rates of seed %d", s.seed)
	}
	if s.methods != nil {
		c.Claims = append(c.Claims, bench.NewClaim(id+"/queues", "what the QoS flows got more than with queues", overQueues, slices.DeleteFunc(namesOf(s.methods), func(name string) bool { return name == queueMethod.name })...))
	} else if s.protocol == traffic.TCP {
		c.Claims = append(c.Claims, bench.NewClaim(id+"/retransmissions", "segments that QoS flows sent again in intervals in which they offered no more than is reserved", noSegments))
	}
	if s.varying {
		c.Claims = append(c.Claims,
			bench.NewClaim(id+"/thesis", fmt.Sprintf("difference of the gain of the paper's algorithm over queues from the paper's %+.2f %%", s.paperGain()), within3),
			bench.NewClaim(id+"/thesis-total", fmt.Sprintf("change of the total by the paper's algorithm over queues, of which the paper has %+.1f %%: a loss", paperTotal), below0))
	}
	return c
}

func (s scenario) slowUDP() bool {
	return s.row == "scenarios" && s.factor == slow && s.protocol == traffic.UDP
}

// paperGain is the gain of the paper's algorithm over queues, 0 if the paper has no number.
func (s scenario) paperGain() float64 {
	switch {
	case s.table.Unreserved == 20 && s.random:
		return paperRandom20
	case s.table.Unreserved == 50 && !s.random:
		return paperControlled50
	}
	return 0
}

// together reports whether all methods are measured at the same time: at 5 Mbit/s they load the machine little.
func (s scenario) together() bool { return s.factor == slow }

// alongside is the batch of cases that are measured at the same time. Five networks of switches take two thirds of two processors: with 13 of them Headgate had 92.5 and 89.7 %
// of the ideal, with five 99.3 and 99.0; eight networks of routers took all of both, and no reservation came into force.
func (s scenario) alongside(quick bool) string {
	switch {
	case quick && (s.row == "routers" || s.protocol == traffic.TCP):
		return "smoke of TCP and routers" // four networks
	case quick || s.row == "routers" && s.together():
		return fmt.Sprint(s.row, s.protocol, s.table.Unreserved)
	}
	return ""
}

// got is what flows got in a run, as parts of the ideal in percent.
type got struct {
	qos, total float64
	// rate is the mean rate of the QoS flows, and all that of all flows.
	rate, all       float64
	retransmissions uint64
	lost            float64     // of what QoS flows sent, in percent
	seconds         [][]float64 // by flow
	again           []string    // the seconds in which retransmissions were counted
}

// smoke reports whether a smoke run has the case.
func (s scenario) smoke() bool {
	return s.factor == slow && (s.table.Unreserved == 50 && !s.random || s.varying)
}

// errFull is why a smoke run has no value of a claim.
var errFull = errors.New("only in the full benchmark")

func (s scenario) run(ctx context.Context, r *bench.Run) error {
	methods := append([]method{ourMethod}, s.methods...)
	if r.Quick && !r.Few {
		switch {
		case !s.smoke():
			return errFull
		case s.methods != nil && !s.varying:
			methods = []method{ourMethod, queueMethod}
		}
	}
	results, problems := make([]got, len(methods)), make([]error, len(methods))
	measure := func(i int) { results[i], problems[i] = s.measure(ctx, r, methods[i]) }
	if s.together() {
		var all sync.WaitGroup
		for i := range methods {
			all.Go(func() { measure(i) })
		}
		all.Wait()
	} else {
		for i, m := range methods {
			r.Say("%s", m.name)
			measure(i)
		}
	}
	if problems[0] != nil {
		return problems[0]
	}
	var queues *got
	for i, m := range methods {
		if m.name == queueMethod.name && problems[i] == nil {
			queues = &results[i]
		}
	}
	id := s.id()
	for i, m := range methods {
		sheet := r.Sheet(m.name)
		if problems[i] != nil {
			sheet.Fail(problems[i])
			continue
		}
		g := results[i]
		sheet.Set(id+"/qos", g.qos)
		sheet.Set(id+"/total", g.total)
		if m.name == bench.Ours {
			sheet.Note(id+"/qos", "QoS flows got %v, and lost %.2f %% of what they sent; all got %v", unit.Rate(g.rate), g.lost, unit.Rate(g.all))
			if s.methods == nil && s.protocol == traffic.TCP {
				sheet.Set(id+"/retransmissions", float64(g.retransmissions))
				if len(g.again) > 0 {
					sheet.Note(id+"/retransmissions", "%s", strings.Join(g.again, "; "))
				}
			}
		}
		if queues != nil && m.name != queueMethod.name && s.methods != nil {
			sheet.Set(id+"/queues", 100*(g.rate/queues.rate-1))
		}
		if m.name == thesisMethod.name && s.varying && queues != nil {
			gain, total := 100*(g.rate/queues.rate-1), 100*(g.all/queues.all-1)
			ours := r.Sheet(bench.Ours)
			ours.Set(id+"/thesis", math.Abs(gain-s.paperGain()))
			ours.Note(id+"/thesis", "the gain is %+.2f %%", gain)
			ours.Set(id+"/thesis-total", total)
		}
		sheet.Keep("seconds", g.seconds)
	}
	r.Plot(s.plot(results[0], r.Quick))
	return ctx.Err()
}

// flows returns the traffic of the scenario: hi sends to h(i+5) at port 5000 + i.
func (s scenario) flows(quick bool) (all []traffic.Flow) {
	rates := s.rates(quick)
	for i, f := range s.table.Flows {
		one := traffic.Flow{Name: f.Name, From: hostName(i + 1), To: hostName(i + 6), Protocol: s.protocol, DstPort: uint16(5001 + i)}
		if f.Class == share.BestEffort {
			one.Protocol = traffic.UDP // the rest is greedy
		}
		for k, at := range rates {
			one.Schedule = append(one.Schedule, traffic.Step{At: time.Duration(k) * s.interval(quick), Rate: at[i]})
		}
		all = append(all, one)
	}
	return all
}

// network is the paper's, or the same of routers.
func (s scenario) network(m method) design {
	d := thesis(s.factor * sharetest.LinkRate)
	d.routers, d.scheme = s.row == "routers", m.scheme
	if s.factor == fast {
		// Emulated lines of hosts and of routers took all of two processors, and those of routers alone take half of them.
		for i := range d.hosts {
			d.hosts[i].rate = 0
		}
	}
	return d
}

func (s scenario) measure(ctx context.Context, r *bench.Run, m method) (g got, err error) {
	n, err := s.network(m).up(ctx)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	if m.queues != nil {
		if err := n.queue(ctx, s, m); err != nil {
			return g, err
		}
	}
	if !m.without {
		var all []promise
		for i, f := range s.table.At(s.factor).Flows {
			if f.Class != share.BestEffort {
				all = append(all, promise{name: strings.ToLower(f.Name), from: hostName(i + 1), to: hostName(i + 6), rate: f.Reserved, class: f.Class, protocol: string(s.protocol), port: 5001 + i})
			}
		}
		if err := n.reserve(ctx, all...); err != nil {
			return g, err
		}
	}
	length := time.Duration(len(s.rates(r.Quick))) * s.interval(r.Quick)
	session, err := traffic.Start(ctx, n.Host, s.flows(r.Quick), traffic.Options{Duration: length, Interval: time.Second})
	if err != nil {
		return g, err
	}
	result := session.Wait()
	if ctx.Err() != nil {
		return g, ctx.Err()
	}
	if m.queues != nil {
		if err := n.queuesUsed(ctx, m); err != nil {
			return g, err
		}
	}
	return s.judge(result, r.Quick)
}

// judge compares what arrived with the ideal.
func (s scenario) judge(result *traffic.Result, quick bool) (g got, err error) {
	rates, each := s.rates(quick), s.interval(quick)
	net := s.table.Network(s.factor)
	var wantQoS, wantAll, gotQoS, gotAll, sent, lost, seconds float64
	g.seconds = make([][]float64, len(net.Flows))
	for k, offered := range rates {
		ideal := share.Ideal(net, offered)
		from, to := time.Duration(k)*each, time.Duration(k+1)*each
		seconds += each.Seconds()
		for i, f := range net.Flows {
			flow := result.Flow(f.Key)
			if flow == nil || flow.Error != "" {
				return g, fmt.Errorf("flow %s: %v", f.Key, flow)
			}
			part := flow.Between(from, to)
			bits := part.DeliveredL2Bits
			want := float64(ideal[i]) * each.Seconds()
			wantAll, gotAll = wantAll+want, gotAll+bits
			if f.Class == share.BestEffort {
				continue
			}
			wantQoS, gotQoS = wantQoS+want, gotQoS+bits
			sent, lost = sent+float64(part.Datagrams), lost+float64(part.LostDatagrams)
			if offered[i] <= f.Reserved {
				g.retransmissions += part.Retransmits
				g.again = append(g.again, retransmitted(flow, from, to)...)
			}
		}
	}
	for i, f := range net.Flows {
		for _, iv := range result.Flow(f.Key).Intervals {
			g.seconds[i] = append(g.seconds[i], math.Round(iv.DeliveredRate()))
		}
	}
	g.qos, g.total = 100*gotQoS/wantQoS, 100*gotAll/wantAll
	g.rate, g.all = gotQoS/seconds, gotAll/seconds
	if sent > 0 {
		g.lost = 100 * lost / sent
	}
	return g, nil
}

// retransmitted names the seconds of a part in which a flow retransmitted.
func retransmitted(flow *traffic.FlowResult, from, to time.Duration) (all []string) {
	for _, iv := range flow.Intervals {
		if at := time.Duration(iv.StartSeconds * float64(time.Second)); iv.Retransmits > 0 && at >= from && at < to {
			all = append(all, fmt.Sprintf("%s %d in second %d of its %.0f, of which %d arrived twice", flow.Name, iv.Retransmits, int((at-from).Seconds()), (to-from).Seconds(), iv.Duplicates))
		}
	}
	return all
}

// queue puts the paper's queues at the bottleneck, at port 3 of s2 (section 5.1.1): HTB with a minimum rate for each, and the rate of the link
// for all.
func (n *network) queue(ctx context.Context, s scenario, m method) error {
	port, err := n.Switch("s2").Port("s5")
	if err != nil {
		return err
	}
	net := s.table.Network(s.factor)
	capacity := net.Capacities[sharetest.Bottleneck]
	tc := func(args ...string) error {
		out, err := n.Switch("s2").Command(ctx, "tc", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("tc %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	bits := func(r unit.Rate) string { return fmt.Sprintf("%dbit", uint64(r)) }
	limit := fmt.Sprint(max(uint64(float64(capacity)/8*0.05), 70_000)) // as the link's own queue
	dev := port.Device
	err = errors.Join(
		tc("qdisc", "del", "dev", dev, "root"), // the lab's own, which holds the same rate
		tc("qdisc", "add", "dev", dev, "root", "handle", "1:", "htb", "default", fmt.Sprint(len(m.queues))),
		tc("class", "add", "dev", dev, "parent", "1:", "classid", "1:ff", "htb", "rate", bits(capacity), "ceil", bits(capacity), "burst", "3000", "cburst", "3000"))
	queues := share.QueuesFor(net, sharetest.Bottleneck, m.queues...)
	least := slices.MinFunc(queues, func(a, b share.Queue) int { return cmp.Compare(a.Minimum, b.Minimum) }).Minimum
	for q, queue := range queues {
		id := fmt.Sprintf("1:%d", q+1)
		err = errors.Join(err,
			tc("class", "add", "dev", dev, "parent", "1:ff", "classid", id, "htb", "rate", bits(queue.Minimum), "ceil", bits(capacity), "burst", "3000", "cburst", "3000", "quantum", fmt.Sprint(uint64(queue.Minimum*3028/least))),
			tc("qdisc", "add", "dev", dev, "parent", id, "bfifo", "limit", limit))
		for _, class := range m.queues[q] {
			for i, f := range net.Flows {
				if f.Class != class || class == share.BestEffort {
					continue // the last queue is the default
				}
				// Between switches each frame has a tag. The kernel takes what a packet socket sends behind it as the network header.
				dst := binary.BigEndian.Uint32(n.addr[hostName(i+6)].AsSlice())
				err = errors.Join(err, tc("filter", "add", "dev", dev, "parent", "1:", "protocol", "802.1Q", "prio", "1", "u32", "match", "u32", fmt.Sprintf("%#x", dst), "0xffffffff", "at", "16", "flowid", id))
			}
		}
	}
	return err
}

// classSent matches a class in the output of tc, and the bytes that it has sent.
var classSent = regexp.MustCompile(`(?m)^class htb (\S+) .*\n Sent (\d+) bytes`)

// queuesUsed reports a queue of the bottleneck that has sent nothing: its traffic is in another one.
func (n *network) queuesUsed(ctx context.Context, m method) error {
	port, err := n.Switch("s2").Port("s5")
	if err != nil {
		return err
	}
	out, err := n.Switch("s2").Command(ctx, "tc", "-s", "class", "show", "dev", port.Device).Output() // with -j it prints no JSON
	if err != nil {
		return fmt.Errorf("cannot read the classes of %s: %w", port.Device, err)
	}
	sent := map[string]int{}
	for _, c := range classSent.FindAllStringSubmatch(string(out), -1) {
		sent[c[1]], _ = strconv.Atoi(c[2])
	}
	for q := range m.queues {
		if sent[fmt.Sprintf("1:%d", q+1)] < 100_000 {
			return fmt.Errorf("queue %d of %s has sent %d bytes: its traffic went elsewhere", q+1, m.name, sent[fmt.Sprintf("1:%d", q+1)])
		}
	}
	return nil
}

// plot draws what the flows offered and got, as figure 5.3.
func (s scenario) plot(g got, quick bool) plot.Plot {
	p := plot.Plot{
		Row: s.row, File: strings.ReplaceAll(s.id(), "/", "-"), X: "time (s)", Y: "Mbit/s",
		Title:   fmt.Sprintf("%d %% unreserved, %s, %s", s.table.Unreserved, bench.Pick(s.random, "random", "controlled"), s.protocol),
		Caption: "Dashed: what each flow offered. Lines: what the receivers got in each second, with Headgate.",
	}
	rates := s.rates(quick)
	for i, f := range s.table.Flows {
		offered := plot.Line{Colour: i, Dashed: true, Steps: true}
		for k := range rates {
			offered.X, offered.Y = append(offered.X, float64(k)*s.interval(quick).Seconds()), append(offered.Y, float64(rates[k][i])/1e6)
		}
		received := plot.Line{Name: f.Name, Colour: i, Steps: true}
		for k, bits := range g.seconds[i] {
			received.X, received.Y = append(received.X, float64(k)), append(received.Y, bits/1e6)
		}
		p.Lines = append(p.Lines, offered, received)
	}
	return p
}
