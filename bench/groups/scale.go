package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"headgate/bench"
	"headgate/bench/peers"
	"headgate/group"
	"headgate/lab"
	"headgate/lab/traffic"
	"headgate/shaper"
	"headgate/unit"
)

const (
	scaleGroups = 4000
	scaleLimit  = 10 * unit.Gbit
	// steadyPort is of the group that nobody touches; its traffic is watched for
	// losses while the others change.
	steadyPort = basePort
	busyPort   = 10_000
	steadyRate = 20 * unit.Mbit
)

const scaleTC = "tc by hand"

// What is claimed, in the order in which it is measured.
var scaleClaims = []bench.Claim{
	bench.NewClaim("scale/apply", "from 2 groups to 4,000, both directions, under traffic", scaleApply, scaleTC),
	bench.NewClaim("scale/re-rate-all", "every group but one gets another guarantee", scaleRerate, scaleTC),
	bench.NewClaim("scale/no-op-apply", "the same plan again: changes to traffic control that the kernel announces", scaleNoop, scaleTC),
	bench.NewClaim("scale/clear", "all of it taken away", scaleClear, scaleTC),
	bench.NewClaim("scale/lost/out", "datagrams of an untouched group lost meanwhile (until clear)", scaleLost, scaleTC),
	bench.NewClaim("scale/lost/in", "datagrams of an untouched group lost meanwhile (until clear)", scaleLost, scaleTC),
}

// scalePlan has n groups besides the steady one, in both directions, each with
// a guarantee in bit/s.
func scalePlan(n int, guarantee unit.Rate) (shaper.Plan, error) {
	d := group.Direction{Limit: scaleLimit, Groups: []group.Group{
		{Name: "steady", Guarantee: group.Amount{Share: 10_000}, Match: port(steadyPort)},
	}}
	for i := range n {
		d.Groups = append(d.Groups, group.Group{
			Name: fmt.Sprintf("g%d", i), Guarantee: group.Amount{Rate: guarantee}, Match: port(busyPort + uint16(i)), Default: i == 0,
		})
	}
	p, err := plan(d, false)
	p.In = p.Out
	return p, err
}

// scaleSubject is one who carries out the steps.
type scaleSubject interface {
	limiter
	// change changes the rates of what is in force to those of p.
	change(p shaper.Plan) error
}

// tcByHand is a script of tc commands: one to set all up, one to change rates.
type tcByHand struct{ peers.HTB }

func (t tcByHand) change(p shaper.Plan) error { return t.HTB.Change(p) }

type scaleEngine struct{ engine }

func (e scaleEngine) change(p shaper.Plan) error { return e.Apply(p) }

// scaleRounds is how often all is done in a full bench: the time of one apply
// differs by half between two on a shared machine.
const scaleRounds = 5

func scaleRun(ctx context.Context, r *bench.Run) error {
	ours, err := newLimiter(bench.Ours)
	if err != nil {
		return err
	}
	rounds := scaleRounds
	if r.Quick {
		rounds = 1
	}
	our, theirs := findings{}, findings{}
	var peerFailed error
	for range rounds {
		if err := scaleOne(ctx, r.Sheet(bench.Ours), our, scaleEngine{ours.(engine)}); err != nil {
			return err
		}
		if peerFailed == nil {
			peerFailed = scaleOne(ctx, r.Sheet(scaleTC), theirs, tcByHand{})
		}
	}
	our.judge(r.Sheet(bench.Ours))
	if peerFailed != nil {
		return peerError(r.Sheet(scaleTC), peerFailed)
	}
	theirs.judge(r.Sheet(scaleTC))
	return nil
}

// findings are what the rounds found, by claim.
type findings map[string][]float64

func (f findings) set(claim string, v float64) { f[claim] = append(f[claim], v) }

// judge takes the median of times, and the worst of what must not happen at all.
func (f findings) judge(sheet *bench.Sheet) {
	for claim, v := range f {
		slices.Sort(v)
		if claim == "scale/no-op-apply" || strings.HasPrefix(claim, "scale/lost/") {
			sheet.Set(claim, v[len(v)-1])
			continue
		}
		sheet.Set(claim, v[len(v)/2])
		sheet.Note(claim, "median of %d, from %s to %s s", len(v), bench.Number(v[0]), bench.Number(v[len(v)-1]))
	}
}

// scaleOne takes one subject through all steps.
func scaleOne(ctx context.Context, sheet *bench.Sheet, found findings, who scaleSubject) (err error) {
	few, err := scalePlan(1, 2*unit.Mbit)
	many, err2 := scalePlan(scaleGroups-1, 2*unit.Mbit)
	rerated, err3 := scalePlan(scaleGroups-1, 1800*unit.Kbit)
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	l, err := lab.Up(ctx, lab.Rig(lab.RigOptions{Name: lab.UniqueName("bench")}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	ours := sheet.By == bench.Ours
	if ours { // by hand there is no way from few to many but to begin anew
		if err := within(l, func() error { return who.Apply(few) }); err != nil {
			return err
		}
	}
	flows := []traffic.Flow{}
	for _, in := range []bool{false, true} {
		from, to := ends(in)
		flows = append(flows,
			traffic.Flow{Name: "steady-" + direction(in), From: from, To: to, Protocol: traffic.UDP, DstPort: steadyPort, Schedule: traffic.Constant(steadyRate)},
			traffic.Flow{Name: "busy-" + direction(in), From: from, To: to, Protocol: traffic.TCP, DstPort: busyPort + 100, Schedule: traffic.Constant(5 * steadyRate)},
		)
	}
	s, err := traffic.Start(ctx, l.Host, flows, traffic.Options{Interval: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	stopped := false
	var result *traffic.Result
	stop := func() {
		if !stopped {
			stopped = true
			s.Stop()
			result = s.Wait()
		}
	}
	defer stop()
	// Between steps there is time for losses to be noticed.
	pause := func() error { return wait(ctx, 300*time.Millisecond) }
	timed := func(claim string, do func() error) error {
		if err := pause(); err != nil {
			return err
		}
		return within(l, func() error {
			began := time.Now()
			err := do()
			if claim != "" {
				found.set(claim, time.Since(began).Seconds())
			}
			return err
		})
	}
	if err := timed("scale/apply", func() error { return who.Apply(many) }); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	if err := timed("scale/re-rate-all", func() error { return who.change(rerated) }); err != nil {
		return fmt.Errorf("re-rate all: %w", err)
	}
	var writes int
	err = timed("", func() (err error) {
		writes, err = announced(func() error { return who.change(rerated) })
		return err
	})
	if err != nil {
		return fmt.Errorf("no-op apply: %w", err)
	}
	found.set("scale/no-op-apply", float64(writes))
	if err := pause(); err != nil {
		return err
	}
	calm := time.Duration(traffic.MonotonicNow() - s.StartMonotonicNs())
	if err := timed("scale/clear", func() error { return who.Clear(dev) }); err != nil {
		return fmt.Errorf("clear: %w", err)
	}
	if err := pause(); err != nil {
		return err
	}
	stop()
	for _, in := range []bool{false, true} {
		name := "steady-" + direction(in)
		f := result.Flow(name)
		if f.Error != "" {
			return fmt.Errorf("flow %s: %s", name, f.Error)
		}
		before, after := f.Between(0, calm), f.Between(calm, time.Hour)
		sheet.Keep(name, map[string]uint64{"sent": f.Total.Datagrams, "lost_until_clear": before.LostDatagrams, "lost_from_clear": after.LostDatagrams})
		if !ours {
			sheet.Note("scale/lost/"+direction(in), "it is made anew, and nothing was limited before")
		}
		found.set("scale/lost/"+direction(in), float64(before.LostDatagrams))
	}
	return nil
}

// announced counts the changes to traffic control that the kernel announces in
// the calling thread's namespace while fn runs.
func announced(fn func() error) (int, error) {
	const group = 1 << (unix.RTNLGRP_TC - 1)
	c, err := netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{Groups: group})
	if err != nil {
		return 0, fmt.Errorf("listen to the kernel's announcements: %w", err)
	}
	defer c.Close()
	if err := c.SetReadBuffer(64 << 20); err != nil {
		return 0, err
	}
	if err := fn(); err != nil {
		return 0, err
	}
	count := 0
	for {
		if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			return 0, err
		}
		msgs, err := c.Receive()
		if err != nil {
			if strings.Contains(err.Error(), "timeout") {
				return count, nil
			}
			return count, err
		}
		count += len(msgs)
	}
}

func scaleBenches() []bench.Case {
	return []bench.Case{{
		Name: "scale", Claims: scaleClaims, Run: scaleRun,
		Takes: func(quick bool) time.Duration {
			if quick {
				return 8 * time.Second
			}
			return scaleRounds * 8 * time.Second
		},
	}}
}
