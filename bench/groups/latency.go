package groups

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

const latencyLimit = 100 * unit.Mbit

// bottleneck is the real link behind the limit.
const bottleneck = latencyLimit * 101 / 100

// latencyTiming: the network is idle, then loaded, and measured after it has settled.
type latencyTiming struct {
	quiet, settle, loaded time.Duration
	every                 time.Duration
	margin                time.Duration // the path's round-trip time
}

func (t latencyTiming) ends() time.Duration { return t.quiet + t.settle + t.loaded }

func latencyTimes(quick, quiet bool) latencyTiming {
	const ms = time.Millisecond
	t := latencyTiming{quiet: 10 * time.Second, settle: 2 * time.Second, loaded: 20 * time.Second, every: 5 * ms}
	if quick {
		t = latencyTiming{quiet: 1000 * ms, settle: time.Second, loaded: 1700 * ms, every: 2 * ms}
	}
	if !quiet {
		t.quiet = 200 * ms
	}
	return t
}

// quietCase is a quiet group besides three full ones.
type quietCase struct{ protocol traffic.Protocol }

func (c quietCase) id() string { return "latency/quiet/" + string(c.protocol) }

func (c quietCase) claim() bench.Claim {
	return bench.NewClaim(c.id(), "p99 of a quiet group's round-trip time, minus its p99 without load", latencyQuiet, htbName, tbfName, policerName).
		WithNote("an experiment during the design had 1.7 to 1.9 ms with HTB and FIFO leaves by hand")
}

func (c quietCase) run(ctx context.Context, r *bench.Run) error {
	t := latencyTimes(r.Quick, true)
	from, to := ends(false)
	var flows []traffic.Flow
	for i := 1; i < len(seedShares); i++ {
		rate := traffic.Unlimited
		if c.protocol == traffic.UDP {
			rate = 40 * unit.Mbit
		}
		flows = append(flows, traffic.Flow{
			Name: groupName(i), From: from, To: to, Protocol: c.protocol, DstPort: basePort + uint16(i), Schedule: []traffic.Step{{At: t.quiet, Rate: rate}},
		})
	}
	bars := newBars()
	err := inTurn(latencyLimiters(r.Quick && c.protocol != traffic.TCP), r.Quick, func(name string) error {
		sheet := r.Sheet(name)
		f, err := latencyTrial(name, false, flows, t, nil).run(ctx)
		if err != nil {
			return peerError(sheet, err)
		}
		unloaded, loaded := latencyOf(f, t)
		sheet.Keep("unloaded", unloaded)
		sheet.Keep("loaded", loaded)
		sheet.Keep("lost_probes", f.probe.Lost)
		sheet.Keep("offloads", f.offloads)
		sheet.Set(c.id(), (loaded.P99Us-unloaded.P99Us)/1e3)
		bars.add(name, unloaded.P99Us/1e3, loaded.P50Us/1e3, loaded.P99Us/1e3)
		return nil
	})
	r.Plot(bars.plot("latency-quiet-"+string(c.protocol), "Round-trip time of a quiet group besides three full ones ("+string(c.protocol)+")",
		[]string{"unloaded, p99", "loaded, median", "loaded, p99"}))
	return err
}

// fullCase is a group that fills the whole limit.
type fullCase struct {
	ecn   bool
	flows int
	// path is the additional round-trip time, 0 in the cases of the targets.
	path time.Duration
	in   bool
}

// longPaths are chosen by this project. The marker's threshold must adapt, so that neither latency at
// 50 us nor goodput at 100 ms is lost; the targets have no values for long paths, only for 0.1 ms. In
// direction out, the sending host itself keeps at most some 2 ms in its own queue (TCP small queues),
// and after slow start little is marked; in direction in, the sender does not see the queue.
var longPaths = []time.Duration{10 * time.Millisecond, 100 * time.Millisecond}

func (c fullCase) id(what string) string {
	if c.path > 0 {
		return fmt.Sprintf("latency/not-in-the-issue/cubic-ecn-%v-path/%s/%s", c.path, direction(c.in), what)
	}
	ecn := "no-ecn"
	if c.ecn {
		ecn = "ecn"
	}
	flows := "1-flow"
	if c.flows > 1 {
		flows = fmt.Sprintf("%d-flows", c.flows)
	}
	return fmt.Sprintf("latency/full/cubic-%s-%s/%s", ecn, flows, what)
}

// name returns the case's name.
func (c fullCase) name() string { return strings.TrimSuffix(c.id(""), "/") }

// peers reports whether a smoke run has the peers in this setting.
func (c fullCase) peers() bool { return c.ecn && c.flows == 1 && c.path == 0 }

// wait returns the id of the claim on the queue delay; for long paths the path's own time is
// subtracted.
func (c fullCase) wait() string {
	if c.path > 0 {
		return c.id("wait")
	}
	return c.id("rtt")
}

// timing: over a long path slow start takes seconds, and CUBIC's cycle, from one reduction to the
// next, some 9 s at 100 ms.
func (c fullCase) timing(quick bool) latencyTiming {
	t := latencyTimes(quick, false)
	if c.path == 0 {
		return t
	}
	t.quiet, t.margin = 500*time.Millisecond, c.path // the path's own time is measured here
	if quick {
		t.settle, t.loaded = 2500*time.Millisecond, 2*time.Second
	} else {
		t.settle, t.loaded = 5*time.Second, 40*time.Second
	}
	return t
}

func (c fullCase) claims() []bench.Claim {
	if c.path > 0 {
		const ours = "the requirements have no value for long paths; the target is that of their "
		long := fmt.Sprintf("inside a full group over a path of %d ms, %s", c.path.Milliseconds(), direction(c.in))
		return []bench.Claim{
			bench.NewClaim(c.wait(), "mean round-trip time "+long+", minus that of the unloaded path", latencyWait, htbName, tbfName, policerName).
				WithNote(ours + "case without ECN"),
			bench.NewClaim(c.id("goodput"), "goodput "+long+"; 95.6 % is TCP's ceiling", latencyGoodput, htbName, tbfName, policerName).
				WithNote(ours + "cases at 0.1 ms"),
		}
	}
	rtt := latencyNoECN
	if c.ecn {
		rtt = latencyECN
	}
	return []bench.Claim{
		bench.NewClaim(c.id("rtt"), "mean round-trip time inside a full group", rtt, htbName, tbfName, policerName),
		bench.NewClaim(c.id("goodput"), "goodput of the full group; 95.6 % is TCP's ceiling", latencyGoodput, htbName, tbfName, policerName),
	}
}

func (c fullCase) run(ctx context.Context, r *bench.Run) error {
	t := c.timing(r.Quick)
	from, to := ends(c.in)
	var flows []traffic.Flow
	for i := range c.flows {
		flows = append(flows, traffic.Flow{
			Name: fmt.Sprintf("flow%d", i), From: from, To: to, Protocol: traffic.TCP, Congestion: "cubic", DstPort: basePort,
			Schedule: []traffic.Step{{At: t.quiet, Rate: traffic.Unlimited}},
		})
	}
	sysctl := map[string]string{"net.ipv4.tcp_ecn": "0"}
	if c.ecn {
		sysctl["net.ipv4.tcp_ecn"] = "1"
	}
	if c.path > 0 {
		// The default, 4 MB including the kernel's overhead for each packet, is just the window that
		// 100 Mbit/s over 100 ms needs: there would be no marks.
		sysctl["net.ipv4.tcp_wmem"], sysctl["net.ipv4.tcp_rmem"] = "4096 65536 33554432", "4096 131072 33554432"
	}
	bars := newBars()
	err := inTurn(latencyLimiters(r.Quick && !c.peers()), r.Quick, func(name string) error {
		sheet := r.Sheet(name)
		trial := latencyTrial(name, c.in, flows, t, sysctl)
		trial.rig.RTT = c.path
		f, err := trial.run(ctx)
		if err != nil {
			return peerError(sheet, err)
		}
		unloaded, loaded := latencyOf(f, t)
		var without float64
		if c.path > 0 {
			without = unloaded.MeanUs
			sheet.Keep("unloaded", unloaded)
		}
		var goodput float64
		var marked, retransmitted uint64
		for i := range f.traffic.Flows {
			iv := f.traffic.Flows[i].Between(t.quiet+t.settle, t.ends())
			goodput += float64(iv.DeliveredBytes) * 8 / iv.Seconds
			marked, retransmitted = marked+iv.DeliveredCE, retransmitted+iv.Retransmits
		}
		sheet.Keep("loaded", loaded)
		sheet.Keep("retransmitted", retransmitted)
		sheet.Keep("marked", marked)
		sheet.Keep("lost_probes", f.probe.Lost)
		sheet.Keep("offloads", f.offloads)
		sheet.Set(c.wait(), (loaded.MeanUs-without)/1e3)
		sheet.Set(c.id("goodput"), 100*goodput/float64(latencyLimit))
		sheet.Note(c.wait(), "p99 %s ms", bench.Number((loaded.P99Us-without)/1e3))
		bars.add(name, (loaded.MeanUs-without)/1e3, (loaded.P99Us-without)/1e3)
		return nil
	})
	title := "Round-trip time inside a full group, " + path.Base(c.name())
	if c.path > 0 {
		title = fmt.Sprintf("Queue delay inside a full group: round-trip time minus the path's %d ms, %s", c.path.Milliseconds(), direction(c.in))
	}
	p := bars.plot(file(c.wait()), title, []string{"mean", "p99"})
	if c.path > 0 {
		p.Y = "added to the round-trip time (ms)"
	}
	r.Plot(p)
	return err
}

// latencyLimiters returns the names of the limiters that are measured.
func latencyLimiters(oursOnly bool) []string {
	if oursOnly {
		return []string{bench.Ours}
	}
	return []string{bench.Ours, htbName, tbfName, policerName}
}

// latencyTrial probes group0 of the paper's four.
func latencyTrial(name string, in bool, flows []traffic.Flow, t latencyTiming, sysctl map[string]string) trial {
	p, err := plan(seedGroups(latencyLimit), in)
	if err != nil {
		panic(err) // the paper's groups are valid
	}
	from, to := ends(in)
	return trial{
		rig: lab.RigOptions{Bottleneck: bottleneck, In: in, Sysctl: sysctl}, limiter: name, plan: p, flows: flows, length: t.ends(),
		probe:  &traffic.Probe{Name: "probe", From: from, To: to, DstPort: basePort, Every: t.every},
		sample: 100 * time.Millisecond, bin: 10 * time.Millisecond, fifo: true,
	}
}

// latencyOf returns the probe's result before the load, and after it has settled.
func latencyOf(f *found, t latencyTiming) (unloaded, loaded traffic.Times) {
	at := func(d time.Duration) int64 { return f.traffic.StartMonotonicNs + int64(d) }
	// Under load a probe that is sent at the very end may be answered too late, and the last ones of
	// the unloaded path meet the load.
	return f.probe.Between(at(0), at(t.quiet-t.margin)), f.probe.Between(at(t.quiet+t.settle), at(t.ends()-100*time.Millisecond-t.margin))
}

func latencyBenches() (out []bench.Case) {
	takes := func(quick, onlyOurs bool, t latencyTiming) time.Duration {
		return turns(quick, len(latencyLimiters(quick && onlyOurs)), t.ends()+overhead)
	}
	for _, p := range []traffic.Protocol{traffic.TCP, traffic.UDP} {
		c := quietCase{p}
		out = append(out, bench.Case{
			Name: c.id(), Claims: []bench.Claim{c.claim()}, Run: c.run,
			Takes: func(quick bool) time.Duration { return takes(quick, p != traffic.TCP, latencyTimes(quick, true)) },
		})
	}
	var full []fullCase
	for _, ecn := range []bool{true, false} {
		full = append(full, fullCase{ecn: ecn, flows: 1}, fullCase{ecn: ecn, flows: 4})
	}
	for _, d := range longPaths {
		full = append(full, fullCase{ecn: true, flows: 1, path: d}, fullCase{ecn: true, flows: 1, path: d, in: true})
	}
	for _, c := range full {
		out = append(out, bench.Case{
			Name: c.name(), Claims: c.claims(), Run: c.run, Alongside: c.alongside,
			Takes: func(quick bool) time.Duration { return takes(quick, !c.peers(), c.timing(quick)) },
		})
	}
	return out
}

// alongside: a smoke run measures the long paths together, and the cases without peers.
func (c fullCase) alongside(quick bool) string {
	switch {
	case quick && c.path > 0:
		return "long paths"
	case quick && !c.peers():
		return "full"
	}
	return ""
}

// bars collects one group of bars per limiter, in the order of the names.
type bars struct {
	mu sync.Mutex
	by map[string][]float64
}

func newBars() *bars { return &bars{by: map[string][]float64{}} }

func (b *bars) add(name string, values ...float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.by[name] = values
}

func (b *bars) plot(file, title string, sets []string) plot.Plot {
	out := &plot.Bars{}
	for i, set := range sets {
		s := plot.BarSet{Name: set}
		for _, name := range order {
			if v, ok := b.by[name]; ok {
				s.Values = append(s.Values, v[i])
				if i == 0 {
					out.Groups = append(out.Groups, name)
				}
			}
		}
		out.Sets = append(out.Sets, s)
	}
	return plot.Plot{
		File: file, Row: "latency", Title: title, Y: "round-trip time (ms)",
		Caption: "At 100 Mbit/s, with a real link of 101 Mbit/s behind. Round-trip times are from the kernel's receive timestamps.", Bars: out,
	}
}

// order is the order of limiters in plots.
var order = []string{bench.Ours, quantumName, htbName, tbfName, plainName, policerName, noneName}
