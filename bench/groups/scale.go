package groups

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/peers"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

const (
	scaleGroups = 4000
	// scaleConns connections are assigned to groups while these are changed; fewer in a smoke run,
	// because assigning them takes longer than everything else.
	scaleConns      = 100_000
	scaleConnsQuick = 10_000
	// steadyPort is the port of the unchanged group; its traffic is observed for losses while the
	// others change.
	steadyPort = basePort
	busyPort   = 10_000
	steadyRate = 20 * unit.Mbit
)

const scaleTC = "tc by hand"

// scaleCase has all steps under one limit.
type scaleCase struct {
	limit unit.Rate
	name  string // "" is the first
	// steady is the guarantee of the unchanged group, each that of any other group, and then is its
	// changed guarantee.
	steady, each, then unit.Rate
}

// scaleCases: at 10 Gbit/s a super-packet takes so little time that it is not segmented, and each of
// the engine's queues is one qdisc. At 1 Gbit/s it is segmented, and each queue is two.
func scaleCases() []scaleCase {
	return []scaleCase{
		{10 * unit.Gbit, "", 100 * unit.Mbit, 2 * unit.Mbit, 1800 * unit.Kbit},
		{unit.Gbit, "1Gbit", 40 * unit.Mbit, 200 * unit.Kbit, 180 * unit.Kbit},
	}
}

func (c scaleCase) id(what string) string { return path.Join("scale", c.name, what) }

// The claims, in the order of their measurement.
func (c scaleCase) claims() []bench.Claim {
	under := ""
	if c.name != "" {
		under = fmt.Sprintf(", under a limit of %v", c.limit)
	}
	return []bench.Claim{
		bench.NewClaim(c.id("apply"), "time to change from 2 groups to 4,000, both directions, under traffic"+under, scaleApply, scaleTC),
		bench.NewClaim(c.id("re-rate-all"), "time to change the guarantee of every group but one, with 100,000 connections assigned"+under, scaleRerate, scaleTC),
		bench.NewClaim(c.id("apply-of-tc"), "time of apply, relative to that of tc -batch for as many"+under, scaleApplyOf),
		bench.NewClaim(c.id("re-rate-all-of-tc"), "time to change the guarantee of every group but one, relative to that of tc -batch"+under, scaleRerateOf),
		bench.NewClaim(c.id("no-op-apply"), "apply of the same plan: changes to traffic control that the kernel notifies"+under, scaleNoop, scaleTC),
		bench.NewClaim(c.id("clear"), "time to remove everything"+under, scaleClear, scaleTC),
		bench.NewClaim(c.id("lost/out"), "lost datagrams of an unchanged group (until clear)"+under, scaleLost, scaleTC),
		bench.NewClaim(c.id("lost/in"), "lost datagrams of an unchanged group (until clear)"+under, scaleLost, scaleTC),
	}
}

// plan has n groups besides the steady one, in both directions, each with a guarantee.
func (c scaleCase) plan(n int, guarantee unit.Rate) (shaper.Plan, error) {
	d := group.Direction{Limit: c.limit, Groups: []group.Group{
		{Name: "steady", Guarantee: group.Amount{Rate: c.steady}, Match: port(steadyPort)},
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

// scaleAssignments distributes connections that do not exist over the groups.
func scaleAssignments(n int) []shaper.Assignment {
	out := make([]shaper.Assignment, n)
	for i := range out {
		far := netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}) // 198.18/15: for benchmarks (RFC 2544)
		out[i] = shaper.Assignment{
			Conn:  shaper.Conn{Proto: unix.IPPROTO_TCP, A: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), 443), B: netip.AddrPortFrom(far, uint16(1024+i>>16))},
			Group: fmt.Sprintf("g%d", i%(scaleGroups-1)),
		}
	}
	return out
}

// scaleSubject executes the steps.
type scaleSubject interface {
	limiter
	// change changes the active rates to those of p.
	change(p shaper.Plan) error
}

// tcByHand has scripts of tc commands: one to set everything up, one to change rates.
type tcByHand struct{ peers.HTB }

func (t tcByHand) change(p shaper.Plan) error { return t.HTB.Change(p) }

type scaleEngine struct{ engine }

func (e scaleEngine) change(p shaper.Plan) error { return e.Apply(p) }

// assigned returns an error if another number of connections is in groups.
func (e scaleEngine) assigned(n int) error {
	state, err := e.Observe(dev)
	if err == nil && (state.Out.Assigned != n || state.In.Assigned != n) {
		err = fmt.Errorf("of %d assigned connections %d (out) and %d (in) are in groups", n, state.Out.Assigned, state.In.Assigned)
	}
	return err
}

// scaleRounds is the number of rounds in a full benchmark: on a shared machine the times of two
// applies differ by half.
const scaleRounds = 5

func (c scaleCase) run(ctx context.Context, r *bench.Run) error {
	ours, err := newLimiter(bench.Ours)
	if err != nil {
		return err
	}
	rounds, conns := scaleRounds, scaleConns
	if r.Quick {
		rounds, conns = 1, scaleConnsQuick
	}
	our, theirs := findings{}, findings{}
	var peerFailed error
	for range rounds {
		if err := c.one(ctx, r.Sheet(bench.Ours), our, scaleEngine{ours.(engine)}, conns); err != nil {
			return err
		}
		if peerFailed == nil && c.peers(r.Quick && !r.Few) {
			peerFailed = c.one(ctx, r.Sheet(scaleTC), theirs, tcByHand{}, 0)
		}
	}
	c.judge(r.Sheet(bench.Ours), our)
	r.Sheet(bench.Ours).Note(c.id("re-rate-all"), "%d connections were assigned before, in %s s, at most %s s of %d rounds",
		conns, bench.Number(bench.Median(our[assigning])), bench.Number(slices.Max(our[assigning])), rounds)
	if peerFailed != nil {
		return peerError(r.Sheet(scaleTC), peerFailed)
	}
	if !c.peers(r.Quick && !r.Few) {
		r.Sheet(bench.Ours).Fail(errSmoke)
		return nil
	}
	c.judge(r.Sheet(scaleTC), theirs)
	c.compare(r.Sheet(bench.Ours), our, theirs)
	return nil
}

// compare sets the ratios of times of each round, in which one follows the other.
func (c scaleCase) compare(sheet *bench.Sheet, our, theirs findings) {
	for _, what := range []string{"apply", "re-rate-all"} {
		var times []float64
		for i, took := range theirs[c.id(what)] {
			times = append(times, our[c.id(what)][i]/took)
		}
		sheet.SetAll(c.id(what+"-of-tc"), times)
	}
}

// peers reports whether the peer is measured. A smoke run of everything has it in one case.
func (c scaleCase) peers(quick bool) bool { return !quick || c.name == "" }

// findings are the results of the rounds, by claim, in their order.
type findings map[string][]float64

func (f findings) set(claim string, v float64) { f[claim] = append(f[claim], v) }

// assigning is the time to assign all connections, for which there is no claim.
const assigning = "assign"

// judge takes the median of times, and the worst of what must be 0.
func (c scaleCase) judge(sheet *bench.Sheet, found findings) {
	if len(found) > 0 {
		sheet.Keep("rounds", found)
	}
	for claim, v := range found {
		largest := slices.Max(v)
		switch {
		case claim == assigning: // reported with the re-rating
		case claim == c.id("no-op-apply") || strings.HasPrefix(claim, c.id("lost")):
			sheet.Set(claim, largest)
		default:
			sheet.SetAll(claim, v)
		}
	}
}

// one runs all steps of one subject, with some connections assigned.
func (c scaleCase) one(ctx context.Context, sheet *bench.Sheet, found findings, who scaleSubject, conns int) (err error) {
	few, err := c.plan(1, c.each)
	many, err2 := c.plan(scaleGroups-1, c.each)
	rerated, err3 := c.plan(scaleGroups-1, c.then)
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	l, err := lab.Up(ctx, lab.Rig(lab.RigOptions{Name: lab.UniqueName("bench")}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	engine, ours := who.(scaleEngine)
	if ours { // tc by hand can only start over
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
	// The time between steps allows losses to be noticed.
	pause := func() error { return bench.Sleep(ctx, 300*time.Millisecond) }
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
	if err := timed(c.id("apply"), func() error { return who.Apply(many) }); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	if ours { // tc by hand cannot do this
		list := scaleAssignments(conns)
		if err := timed(assigning, func() error { return engine.Assign(dev, list) }); err != nil {
			return fmt.Errorf("cannot assign connections: %w", err)
		}
	}
	if err := timed(c.id("re-rate-all"), func() error { return who.change(rerated) }); err != nil {
		return fmt.Errorf("cannot change all rates: %w", err)
	}
	if ours {
		if err := within(l, func() error { return engine.assigned(conns) }); err != nil {
			return err
		}
	}
	var writes int
	err = timed("", func() (err error) {
		writes, err = announced(func() error { return who.change(rerated) })
		return err
	})
	if err != nil {
		return fmt.Errorf("no-op apply: %w", err)
	}
	found.set(c.id("no-op-apply"), float64(writes))
	if err := pause(); err != nil {
		return err
	}
	calm := time.Duration(traffic.MonotonicNow() - s.StartMonotonicNs())
	if err := timed(c.id("clear"), func() error { return who.Clear(dev) }); err != nil {
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
			sheet.Note(c.id("lost/"+direction(in)), "it is recreated, and nothing was limited before")
		}
		found.set(c.id("lost/"+direction(in)), float64(before.LostDatagrams))
	}
	return nil
}

// announced counts the changes to traffic control that the kernel notifies in the calling thread's
// namespace while fn runs.
func announced(fn func() error) (int, error) {
	const group = 1 << (unix.RTNLGRP_TC - 1)
	c, err := netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{Groups: group})
	if err != nil {
		return 0, fmt.Errorf("cannot listen to the kernel's notifications: %w", err)
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

func scaleBenches() (out []bench.Case) {
	for _, c := range scaleCases() {
		out = append(out, bench.Case{
			Name: path.Join("scale", c.name), Claims: c.claims(), Run: c.run,
			Takes: func(quick bool) time.Duration {
				const ours, theirs, assign = 5 * time.Second, 7 * time.Second, 10 * time.Second
				switch {
				case !quick:
					return scaleRounds * (ours + theirs + assign)
				case c.peers(quick):
					return ours + theirs
				}
				return ours
			},
		})
	}
	return out
}
