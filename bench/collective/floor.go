package collective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// fourShares are the parts of the members of floor cases, of 8.
var fourShares = []float64{4, 2, 1, 1}

// Times of a floor case: its members learn, then everything is counted in windows.
const (
	floorLearns = 12 * time.Second
	floorWindow = 5 * time.Second
	// A full case counts floorWindows of them, a smoke run quickWindows.
	floorWindows, quickWindows = 8, 3
	floorPause                 = 10 * time.Second // of rivals that come and go
)

// fewestQueued is the shortest queue in packets: at 10 Mbit/s and 1 ms four bandwidth-delay products are three packets, which no device has.
const fewestQueued = 16

// again is plain TCP once more: how much two runs of the same differ.
const again = "plain TCP again"

// floorCase is four members that need 84 % of a link at 4:2:1:1, and rivals.
//
//	server ── router ══rate, RTT, queue══ client
type floorCase struct {
	rate    unit.Rate
	rtt     time.Duration
	queue   float64 // in bandwidth-delay products
	kind    string  // droptail, red or codel
	rivals  int
	control string // of the rivals
	members string // congestion control of the members
	pauses  bool   // rivals are on for 10 s and off for 10 s
	smoke   bool   // the case is part of a smoke run
	quick   bool   // it is one
	greedy  bool   // members take all they get when the rivals begin; others go on with what they need
}

func (c floorCase) id() string {
	return fmt.Sprintf("%s/%s/%g-bdp/%s/%d-%s/%s/%s-%s", c.rate, c.rtt, c.queue, c.kind, c.rivals, c.control, bench.Pick(c.pauses, "pauses", "stays"), c.members, bench.Pick(c.greedy, "greedy", "steady"))
}

// floorDrawn is the number of cases. Each value of each property is in equally many of them.
const floorDrawn = 72

func floorCases(d *bench.Draw) (out []bench.Case) {
	d = d.For("floor")
	rates := drawn(d, 10*unit.Mbit, 50*unit.Mbit, 250*unit.Mbit)
	rtts := drawn(d, time.Millisecond, 20*time.Millisecond, 100*time.Millisecond)
	queues := drawn(d, 0.25, 0.5, 1, 2, 4)
	kinds := drawn(d, "droptail", "red", "codel")
	rivals := drawn(d, 1, 2, 4, 20)
	controls := drawn(d, "cubic", "reno", "bbr")
	members := drawn(d, "cubic", "reno")
	pauses, greedy := drawn(d, false, true), drawn(d, false, true)
	var fast []bench.Case
	for i := range floorDrawn {
		c := floorCase{
			rate: rates[i], rtt: rtts[i], queue: queues[i], kind: kinds[i], rivals: rivals[i], control: controls[i], members: members[i], pauses: pauses[i], greedy: greedy[i],
		}
		if c.rate > floorBeside {
			fast = append(fast, c.bench(fmt.Sprint("floor/fast/", len(fast))))
			continue
		}
		c.smoke = len(out) < 3
		out = append(out, c.bench(fmt.Sprint("floor/", len(out)/3)))
	}
	return append(out, fast...)
}

// floorBeside is the highest rate at which all methods and several cases are measured at the same time.
const floorBeside = 50 * unit.Mbit

// drawn returns floorDrawn values in random order, of which all are equally frequent.
func drawn[T any](d *bench.Draw, values ...T) []T {
	all := make([]T, floorDrawn)
	for i := range all {
		all[i] = values[i%len(values)]
	}
	d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (c floorCase) bench(batch string) bench.Case {
	id := c.id()
	measured := bench.Case{
		Name: "floor/" + id,
		Claims: []bench.Claim{
			bench.NewClaim("floor/"+id+"/least", "what the set carries in its worst 5 s, of what plain TCP carries in these 5 s", least5s, again, seed),
			bench.NewClaim("floor/"+id+"/total", "what the set carries over the case, of plain TCP's", aggregate, again, seed),
			bench.NewClaim("parts/"+id, "largest deviation of a member from its proportion in 5 s, after the first", proportionOff, plain, seed),
			bench.NewClaim("resent/"+id, "segments that the set sends again, of plain TCP's", resentPlain, again, seed),
		},
		Drawn:     "the case",
		Takes:     c.takes,
		Alongside: func(bool) string { return batch },
		Run:       c.measure,
	}
	if !c.smoke {
		return unsmoked(measured)
	}
	return measured
}

// windows is how many windows are counted, length how long a run takes.
func (c floorCase) windows() int { return bench.Pick(c.quick, quickWindows, floorWindows) }

func (c floorCase) length() time.Duration {
	return floorLearns + time.Duration(c.windows())*floorWindow
}

func (c floorCase) takes(quick bool) time.Duration {
	c.quick = quick
	each := c.length() + 3*time.Second
	if c.rate > floorBeside {
		return 2 * each
	}
	return each
}

// floorResult is what the members of a method carried, in bits per window, and what they sent again.
type floorResult struct {
	windows [][]float64
	resent  float64
}

func (c floorCase) measure(ctx context.Context, r *bench.Run) error {
	c.quick = r.Quick
	all, err := c.runAll(ctx)
	if err != nil {
		return err
	}
	id, without := c.id(), all[plain]
	for name, got := range all {
		sheet := r.Sheet(name)
		least, note, parts := math.Inf(1), "", 0.0
		var ours, plainly float64
		for w := range got.windows {
			sum, worst := proportion(got.windows[w], fourShares)
			base, _ := proportion(without.windows[w], fourShares)
			ours, plainly = ours+sum, plainly+base
			if part := sum / base; part < least {
				least = part
				note = fmt.Sprintf("%s Mbit/s in the %d. 5 s, plain TCP %s", bench.Number(sum/5e6), w+1, bench.Number(base/5e6))
			}
			if w > 0 {
				parts = max(parts, worst)
			}
		}
		if name != again {
			sheet.Set("parts/"+id, 100*parts)
		}
		if name == plain {
			continue
		}
		sheet.Set("floor/"+id+"/least", 100*least)
		sheet.Note("floor/"+id+"/least", "%s: %s", name, note)
		sheet.Set("floor/"+id+"/total", 100*ours/plainly)
		sheet.Set("resent/"+id, 100*got.resent/max(without.resent, 1))
		sheet.Note("resent/"+id, "%s: %s segments, plain TCP %s", name, bench.Number(got.resent), bench.Number(without.resent))
	}
	return nil
}

func (c floorCase) runAll(ctx context.Context) (map[string]floorResult, error) {
	names := []string{plain, ours, again, seed}
	return runEach(names, bench.Pick(c.rate > floorBeside, 2, len(names)), func(name string) (floorResult, error) { return c.run(ctx, name) })
}

func (c floorCase) topology() *lab.Topology {
	bdp := float64(c.rate) / 8 * c.rtt.Seconds()
	queue := max(int(c.queue*bdp/1514), fewestQueued)
	s := link.Spec{Rate: c.rate, Queue: link.Amount{Segments: queue}}
	switch c.kind {
	case "red":
		s.RED = &link.RED{Profile: link.Profile{Min: link.Amount{Segments: max(queue/6, 2)}, Max: link.Amount{Segments: max(queue/2, 6)}, Probability: 0.1}}
	case "codel":
		s.CoDel = &link.CoDel{}
	}
	return oneLink(s, c.rtt, false)
}

func (c floorCase) run(ctx context.Context, name string) (out floorResult, err error) {
	l, err := lab.Up(ctx, c.topology())
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	port := nextPorts(32)
	members := set{name: "four", scaleControl: bench.Pick(name == again, plain, name)}
	var flows []traffic.Flow
	flow := func(name string, at int, control string, schedule []traffic.Step) {
		flows = append(flows, traffic.Flow{Name: name, From: "server", To: "client", Protocol: traffic.TCP, DstPort: port + uint16(at), Congestion: control, Schedule: schedule})
	}
	for i, share := range fourShares {
		need := unit.Rate(0.84 * float64(c.rate) * share / 8)
		steps := traffic.Constant(need)
		if c.greedy {
			steps = append(steps, traffic.Step{At: floorLearns, Rate: traffic.Unlimited})
		}
		flow(fmt.Sprint("member", i), i, c.members, steps)
		members.rules = append(members.rules, fmt.Sprintf("dport: %d", int(port)+i))
	}
	for i := range c.rivals {
		at := floorLearns + time.Duration(i)*10*time.Millisecond
		steps := []traffic.Step{{Rate: 0}, {At: at, Rate: traffic.Unlimited}}
		for on := false; c.pauses && at < c.length(); on = !on {
			at += floorPause
			steps = append(steps, traffic.Step{At: at, Rate: bench.Pick[unit.Rate](on, traffic.Unlimited, 0)})
		}
		flow(fmt.Sprint("rival", i), 8+i, c.control, steps)
	}
	d, err := watch(ctx, members)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	got, err := traffic.Run(ctx, l.Host, flows, traffic.Options{Duration: c.length(), Interval: 500 * time.Millisecond})
	if err != nil {
		return out, err
	}
	for w := range c.windows() {
		var bits []float64
		for i := range fourShares {
			f := got.Flow(fmt.Sprint("member", i))
			if f.Error != "" {
				return out, fmt.Errorf("flow %s: %s", f.Name, f.Error)
			}
			from := floorLearns + time.Duration(w)*floorWindow
			iv := f.Between(from, from+floorWindow)
			bits = append(bits, float64(iv.DeliveredBytes)*8)
			out.resent += float64(iv.Retransmits)
		}
		out.windows = append(out.windows, bits)
	}
	return out, nil
}
