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

// restartTimes are those of a restart case: members learn, rivals begin, then something happens, and proportions have back to come back.
type restartTimes struct{ learns, settle, count, back time.Duration }

var (
	restartFull  = restartTimes{15 * time.Second, 5 * time.Second, 20 * time.Second, 5 * time.Second}
	restartQuick = restartTimes{8 * time.Second, 3 * time.Second, 8 * time.Second, 5 * time.Second}
)

// What happens under congestion.
const (
	killed      = "kill"      // the daemon is killed, and starts again
	upgraded    = "upgrade"   // it is stopped in order, and starts again
	reconnected = "reconnect" // all members connect again
	pooled      = "pool"      // a member is 50 connections that carry 64 KiB each, and the daemon is killed
)

// restartCase is four members at 4:2:1:1 that need 84 % of a link, are then greedy beside four rivals with CUBIC, and are disturbed.
type restartCase struct {
	what    string
	rate    unit.Rate
	rtt     time.Duration
	members string // congestion control
	smoke   bool
	restartTimes
}

func restartCases() (out []bench.Case) {
	for i, what := range []string{killed, upgraded, reconnected, pooled} {
		for _, members := range []string{"cubic", "reno"} {
			for _, path := range []struct {
				rate unit.Rate
				rtt  time.Duration
			}{{50 * unit.Mbit, 20 * time.Millisecond}, {20 * unit.Mbit, 80 * time.Millisecond}} {
				out = append(out, restartCase{what: what, rate: path.rate, rtt: path.rtt, members: members, smoke: what == killed && members == "cubic" && path.rate == 50*unit.Mbit}.bench(fmt.Sprint("restart/", i, members)))
			}
		}
	}
	return out
}

func (c restartCase) bench(batch string) bench.Case {
	id := fmt.Sprintf("restart/%s/%s/%s/%s", c.what, c.rate, c.rtt, c.members)
	measured := bench.Case{
		Name: id,
		Claims: []bench.Claim{
			bench.NewClaim(id+"/parts", "largest deviation of a member from its proportion, from 5 s after it on", proportionOff, plain),
			bench.NewClaim(id+"/rate", "change of what the set carries, from 5 s after it on", rateKept, plain),
		},
		Takes:     func(quick bool) time.Duration { return c.at(quick).length() + 5*time.Second },
		Alongside: func(quick bool) string { return alongside(quick, batch) },
		Run: func(ctx context.Context, r *bench.Run) error {
			c := c.at(r.Quick)
			all, err := runEach([]string{plain, ours}, 2, func(name string) (restartResult, error) { return c.run(ctx, name) })
			if err != nil {
				return err
			}
			for name, got := range all {
				before, parts := proportion(got.before, fourShares)
				after, worst := proportion(got.after, fourShares)
				sheet := r.Sheet(name)
				sheet.Set(id+"/parts", 100*worst)
				sheet.Note(id+"/parts", "%s: %s Mbit/s, and %s %% off before", name, mbits(got.after), bench.Number(100*parts))
				sheet.Set(id+"/rate", 100*math.Abs(after/before-1))
				sheet.Note(id+"/rate", "%s: %s Mbit/s after %s", name, bench.Number(after/1e6), bench.Number(before/1e6))
			}
			return nil
		},
	}
	if !c.smoke {
		return unsmoked(measured)
	}
	return measured
}

func (c restartCase) at(quick bool) restartCase {
	c.restartTimes = bench.Pick(quick, restartQuick, restartFull)
	return c
}

// happens is when it happens, length how long a run takes.
func (c restartCase) happens() time.Duration { return c.learns + c.settle + c.count }

func (c restartCase) length() time.Duration { return c.happens() + c.back + c.count }

// restartResult is the rates of the members in bit/s.
type restartResult struct{ before, after []float64 }

func (c restartCase) run(ctx context.Context, name string) (out restartResult, err error) {
	bdp := float64(c.rate) / 8 * c.rtt.Seconds()
	l, err := lab.Up(ctx, oneLink(link.Spec{Rate: c.rate, Queue: link.Amount{Segments: int(bdp / 1514)}}, c.rtt, false))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	port := nextPorts(32)
	members := set{name: "four", scaleControl: name}
	for i := range fourShares {
		rule := fmt.Sprintf("dport: %d", int(port)+i)
		if i == 0 && c.what == pooled {
			rule = fmt.Sprintf("sport: %d", port) // clients ask for what members send
		}
		members.rules = append(members.rules, rule)
	}
	d, err := watch(ctx, members)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	start := traffic.MonotonicNow() + int64(time.Second)
	session := func(at, length time.Duration, flows []traffic.Flow) (*traffic.Session, error) {
		return traffic.Start(ctx, l.Host, flows, traffic.Options{Duration: length, Interval: 500 * time.Millisecond, StartAt: start + int64(at)})
	}
	rivals, err := session(0, c.length(), c.rivals(port))
	if err != nil {
		return out, err
	}
	defer func() { rivals.Stop(); rivals.Wait() }()
	first := c.length()
	if c.what == reconnected {
		first = c.happens()
	}
	s, err := session(0, first, c.flows(port, c.learns))
	if err != nil {
		return out, err
	}
	defer func() { s.Stop(); s.Wait() }()
	if err := bench.Sleep(ctx, time.Duration(start-traffic.MonotonicNow())+c.happens()); err != nil {
		return out, err
	}
	switch {
	case c.what == reconnected:
	case c.what == upgraded:
		err = d.restart(ctx, true)
	default:
		err = d.restart(ctx, false)
	}
	if err != nil {
		return out, err
	}
	got, from := s.Wait(), c.happens()+c.back
	if out.before, err = rates(got, "member", len(fourShares), c.learns+c.settle, c.happens()); err != nil {
		return out, err
	}
	if c.what == reconnected {
		again, err := session(c.happens()+500*time.Millisecond, c.length()-c.happens(), c.flows(port, 0))
		if err != nil {
			return out, err
		}
		got, from = again.Wait(), c.back
	}
	out.after, err = rates(got, "member", len(fourShares), from, from+c.count)
	return out, err
}

// flows are those of members, which are greedy from a time on.
func (c restartCase) flows(port uint16, greedy time.Duration) (all []traffic.Flow) {
	for i, share := range fourShares {
		need := unit.Rate(0.84 * float64(c.rate) * share / 8)
		f := traffic.Flow{Name: fmt.Sprint("member", i), From: "server", To: "client", Protocol: traffic.TCP, DstPort: port + uint16(i), Congestion: c.members}
		switch {
		case i == 0 && c.what == pooled:
			const size = unit.Bytes(64 * 1024)
			f.From, f.To = "client", "server"
			f.Requests = &traffic.Requests{
				Request: traffic.Always(unit.Bytes(traffic.MinRequest)), Response: traffic.Always(size), Rate: float64(need.BytesPerSecond()) / float64(size), Connections: 50, Reconnect: true,
			}
		case greedy > 0:
			f.Schedule = []traffic.Step{{Rate: need}, {At: greedy, Rate: traffic.Unlimited}}
		default:
			f.Schedule = traffic.Constant(traffic.Unlimited)
		}
		all = append(all, f)
	}
	return all
}

func (c restartCase) rivals(port uint16) (all []traffic.Flow) {
	for i := range 4 {
		all = append(all, traffic.Flow{
			Name: fmt.Sprint("rival", i), From: "server", To: "client", Protocol: traffic.TCP, DstPort: port + 8 + uint16(i), Congestion: "cubic",
			Schedule: []traffic.Step{{Rate: 0}, {At: c.learns, Rate: traffic.Unlimited}},
		})
	}
	return all
}
