package groups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

// insideCase is paced senders within their guarantees, each in its own group, and a group that is
// overloaded with datagrams.
type insideCase struct {
	name    string
	drawn   string // its random values
	in      bool
	rtt     time.Duration
	senders []insideSender
}

// insideSender writes pieces of this size, at a part of its guarantee.
type insideSender struct {
	guarantee unit.Rate
	part      float64
	write     unit.Bytes
}

func (s insideSender) String() string {
	return fmt.Sprintf("%.0f %% of %v in %v", 100*s.part, s.guarantee, s.write)
}

const kib = unit.Bytes(1024)

// insideCases have every part with every write size in each case.
func insideCases(d *bench.Draw) (out []insideCase) {
	all := func(guarantee unit.Rate) (s []insideSender) {
		for _, part := range []float64{0.5, 0.8, 0.95} {
			for _, write := range []unit.Bytes{1, 4, 16, 64, 128, 256} {
				s = append(s, insideSender{guarantee, part, write * kib})
			}
		}
		return s
	}
	for _, kind := range []struct {
		guarantee unit.Rate
		in        bool
	}{{2 * unit.Mbit, false}, {2 * unit.Mbit, true}, {20 * unit.Mbit, false}} {
		for _, rtt := range []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
			out = append(out, insideCase{
				name: fmt.Sprintf("%s/%v/rtt-%gms", direction(kind.in), kind.guarantee, float64(rtt.Microseconds())/1e3), in: kind.in, rtt: rtt, senders: all(kind.guarantee),
			})
		}
	}
	for n := range 6 {
		c := insideCase{name: fmt.Sprintf("drawn-%d", n+1)}
		d := d.For("inside/" + c.name)
		c.in, c.rtt = bench.OneOf(d, false, true), d.Duration(100*time.Microsecond, 100*time.Millisecond)
		for range 10 {
			c.senders = append(c.senders, insideSender{d.Rate(500*unit.Kbit, 20*unit.Mbit), d.Uniform(0.5, 0.95), unit.Bytes(d.Log(1, 256) * float64(kib))})
		}
		c.drawn = fmt.Sprintf("%s, round-trip time %v, %v", direction(c.in), c.rtt, c.senders)
		out = append(out, c)
	}
	return out
}

// inSmoke reports whether the case is part of a smoke run.
func (c insideCase) inSmoke() bool { return c.name == "out/2Mbit/rtt-10ms" }

func (c insideCase) id(what string) string { return "inside/" + c.name + "/" + what }

func (c insideCase) claims() []bench.Claim {
	return []bench.Claim{
		bench.NewClaim(c.id("drops"), "dropped packets of the groups of all senders", insideDrops),
		bench.NewClaim(c.id("unmet"), "time for which the usage record has guarantees as unmet, total of all senders", insideUnmet),
		bench.NewClaim(c.id("at-risk"), "number of times that a guarantee was at risk, read four times a second", insideRisk),
	}
}

// limit leaves a quarter for the overloaded group.
func (c insideCase) limit() (guaranteed, limit unit.Rate) {
	for _, s := range c.senders {
		guaranteed += s.guarantee
	}
	return guaranteed, guaranteed * 4 / 3
}

// overloadedPort is the port of the overloaded group.
const overloadedPort = basePort + 500

func (c insideCase) plan() (shaper.Plan, error) {
	guaranteed, limit := c.limit()
	d := group.Direction{Limit: limit}
	for i, s := range c.senders {
		d.Groups = append(d.Groups, group.Group{Name: fmt.Sprintf("s%d", i), Guarantee: group.Amount{Rate: s.guarantee}, Match: port(basePort + uint16(i))})
	}
	d.Groups = append(d.Groups, group.Group{Name: "overloaded", Guarantee: group.Amount{Rate: limit - guaranteed}, Match: port(overloadedPort), Default: true})
	return plan(d, c.in)
}

// insideTiming returns the duration of settling, in which drops already count, and that of the
// measurement.
func insideTiming(quick bool) (settle, measure time.Duration) {
	if quick {
		return time.Second, 3 * time.Second
	}
	return 1500 * time.Millisecond, 12 * time.Second
}

func (c insideCase) run(ctx context.Context, r *bench.Run) (err error) {
	if !c.inSmoke() && leftOut(r) {
		return nil
	}
	p, err := c.plan()
	if err != nil {
		return err
	}
	l, err := lab.Up(ctx, lab.Rig(lab.RigOptions{Name: lab.UniqueName("bench"), RTT: c.rtt}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := aggregate(ctx, l); err != nil {
		return err
	}
	ours, err := newLimiter(bench.Ours)
	if err != nil {
		return err
	}
	if err := within(l, func() error { return ours.Apply(p) }); err != nil {
		return err
	}
	defer within(l, func() error { return ours.Clear(dev) })
	settle, measure := insideTiming(r.Quick)
	ctx, stop := context.WithTimeout(ctx, settle+measure+20*time.Second)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	from, to := ends(c.in)
	writers := make([]*writer, len(c.senders))
	for i, s := range c.senders {
		if writers[i], err = connectWriter(l, from, to, basePort+uint16(i)); err != nil {
			return err
		}
		all.Go(func() { writers[i].pace(ctx, s) })
	}
	_, limit := c.limit()
	session, err := traffic.Start(ctx, l.Host, []traffic.Flow{{
		Name: "overloaded", From: from, To: to, Protocol: traffic.UDP, DstPort: overloadedPort, Schedule: traffic.Constant(limit * 7 / 10),
	}}, traffic.Options{})
	if err != nil {
		return err
	}
	defer func() { session.Stop(); session.Wait() }()
	if err := bench.Sleep(ctx, settle); err != nil {
		return err
	}
	for _, w := range writers {
		w.counted.Store(0)
	}
	began := time.Now()
	told, err := c.account(ctx, l, ours.(observer), measure)
	if err != nil {
		return err
	}
	c.judge(r.Sheet(bench.Ours), told, writers, time.Since(began))
	return nil
}

// insideTold has Headgate's counts of one sender's group.
type insideTold struct {
	Sender string  `json:"sender"`
	Drops  uint64  `json:"drops"`
	Unmet  float64 `json:"unmet_s"`
	AtRisk int     `json:"at_risk"`
	Rate   float64 `json:"rate"` // bit/s
	Wrote  float64 `json:"wrote"`
}

// account reads the groups' counters at the intervals of their consumers: the usage record once a
// second, and metrics four times.
func (c insideCase) account(ctx context.Context, l *lab.Lab, e observer, length time.Duration) ([]insideTold, error) {
	const every, often = time.Second, 4
	out := make([]insideTold, len(c.senders))
	read := func() (now usage.Direction, err error) {
		err = within(l, func() error {
			state, err := e.Observe(dev)
			if err != nil {
				return err
			}
			for _, d := range state.Usage() {
				if (d.Name == "in") == c.in {
					now = d
				}
			}
			now.Groups = now.Groups[:len(c.senders)]
			for i, g := range now.Groups {
				out[i].Drops = g.Drops
			}
			return nil
		})
		return now, err
	}
	first, err := read()
	if err != nil {
		return nil, err
	}
	var meter usage.Meter
	meter.Take(map[string][]usage.Direction{dev: {first}})
	was, began := first, time.Now()
	risk := make([]float64, len(first.Groups))
	for n := 1; time.Duration(n)*every/often <= length; n++ {
		if err := bench.Sleep(ctx, time.Until(began.Add(time.Duration(n)*every/often))); err != nil {
			return nil, err
		}
		now, err := read()
		if err != nil {
			return nil, err
		}
		meter.Take(map[string][]usage.Direction{dev: {now}})
		for i, g := range now.Groups {
			if told := meter.Unmet(dev, now.Key(g)); told > risk[i] {
				risk[i] = told
				out[i].AtRisk++
			}
		}
		if n%often != 0 {
			continue
		}
		for i, u := range usage.Account(was.Counters(), now) {
			out[i].Unmet += u.Unmet
			out[i].Rate = usage.Rate(first.Groups[i].Counters, now.Groups[i].Counters)
		}
		was = now
	}
	return out, nil
}

func (c insideCase) judge(s *bench.Sheet, told []insideTold, writers []*writer, took time.Duration) {
	var drops, unmet, risk float64
	var wrong, slow []string
	for i := range told {
		t := &told[i]
		t.Sender = c.senders[i].String()
		t.Wrote = float64(writers[i].counted.Load()) * 8 / took.Seconds()
		drops, unmet, risk = drops+float64(t.Drops), unmet+t.Unmet, risk+float64(t.AtRisk)
		if t.Drops > 0 || t.Unmet > 0 || t.AtRisk > 0 {
			wrong = append(wrong, fmt.Sprintf("%s: %d dropped, unmet %s s, at risk %d times", t.Sender, t.Drops, bench.Number(t.Unmet), t.AtRisk))
		}
		// A difference of one write is within one period of the sender.
		offered := c.senders[i].part * float64(c.senders[i].guarantee)
		if t.Wrote < 0.97*offered-8*float64(c.senders[i].write)/took.Seconds() {
			slow = append(slow, fmt.Sprintf("%s wrote %s Mbit/s", t.Sender, bench.Number(t.Wrote/1e6)))
		}
	}
	s.Keep("groups", told)
	s.Set(c.id("drops"), drops)
	s.Set(c.id("unmet"), unmet)
	s.Set(c.id("at-risk"), risk)
	if len(wrong) > 0 {
		s.Note(c.id("drops"), "%s", strings.Join(wrong, "; "))
	}
	if len(slow) > 0 {
		s.Note(c.id("unmet"), "written too slowly: %s", strings.Join(slow, "; "))
	}
}

// writer is a TCP connection that is written to at a pace.
type writer struct {
	sender, receiver *net.TCPConn
	counted          atomic.Int64
}

func connectWriter(l *lab.Lab, from, to string, port uint16) (*writer, error) {
	sender, receiver, err := connectTo(l, from, to, port)
	if err != nil {
		return nil, err
	}
	return &writer{sender: sender, receiver: receiver}, nil
}

// pace writes until ctx ends. All writers start together, so that their writes coincide.
func (w *writer) pace(ctx context.Context, s insideSender) {
	defer w.sender.Close()
	defer w.receiver.Close()
	stop := context.AfterFunc(ctx, func() { w.sender.Close(); w.receiver.Close() })
	defer stop()
	go func() { _, _ = io.Copy(io.Discard, w.receiver) }()
	// The layer-2 rate is a little above the rate of the writes.
	rate := s.part * float64(s.guarantee.BytesPerSecond()) * 1448 / 1514
	every := time.Duration(float64(s.write) / rate * 1e9)
	text := make([]byte, s.write)
	for next := time.Now(); ctx.Err() == nil; next = next.Add(every) {
		if bench.Sleep(ctx, time.Until(next)) != nil {
			return
		}
		if _, err := w.sender.Write(text); err != nil {
			return
		}
		w.counted.Add(int64(s.write) * 1514 / 1448)
	}
}

func insideBenches(d *bench.Draw) (out []bench.Case) {
	for _, c := range insideCases(d) {
		out = append(out, bench.Case{
			Name: "inside/" + c.name, Claims: c.claims(), Run: c.run, Drawn: c.drawn,
			Alongside: inSlow(c.inSmoke()),
			Takes: func(quick bool) time.Duration {
				settle, measure := insideTiming(quick)
				if quick && !c.inSmoke() {
					return 0
				}
				return settle + measure + 2*overhead
			},
		})
	}
	return out
}
