package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/unit"
)

// Targets.
var (
	newLeader = bench.Target{Op: "<=", Value: 6, Unit: "s"}
	service   = bench.Target{Op: "<=", Value: 10, Unit: "s"}
	enforcers = bench.Target{Op: "<=", Value: 0, Unit: "agents"}
	leaders   = bench.Target{Op: "<=", Value: 0, Unit: "times"}
)

// Chosen by this project.
const (
	// faultPatience is the time limit for a new leader, and for a change to reach the kernel.
	faultPatience = 60 * time.Second
	// minFault is the minimum duration of a fault, in which the agents are observed.
	minFault = 8 * time.Second
	// afterFault is how long leaders are counted after the fault.
	afterFault = 5 * time.Second
	// skew is how much the leader's clock is ahead, and that of another controller behind: certificates that were
	// issued in this hour are not yet valid, and tokens of minutes have expired.
	skew = time.Hour
	// smallDisk has space for etcd's preallocated files, and for the required 256 MiB of free space.
	smallDisk = 512 << 20
)

// fault is a fault of the leader, or of several controllers.
type fault struct {
	name string
	setting
	// stays: the leader may continue, and the time without a leader is reported.
	stays bool
	// anew: the agent is killed and restarted during the fault, so that it has to connect again.
	anew bool
	// lasts is the duration of a fault after which the measurement starts.
	lasts time.Duration
	// inject causes the fault, and returns the function that ends it.
	inject func(ctx context.Context, c *control) (over func() error, err error)
}

// faults are those of the targets.
var faults = []fault{
	{name: "kill", inject: func(ctx context.Context, c *control) (func() error, error) {
		return func() error { return c.start(ctx) }, c.stop(syscall.SIGKILL)
	}},
	{name: "stop", inject: func(_ context.Context, c *control) (func() error, error) {
		return suspend(c.cmd.Process.Pid)
	}},
	{name: "partition", inject: func(ctx context.Context, c *control) (func() error, error) {
		// On the router's side, which has only the route to the controller's link.
		link := func(state string) error { return c.place.router(ctx, "link", "set", "dev", c.name, state) }
		return func() error { return link("up") }, link("down")
	}},
	{name: "clock-skew", setting: setting{clocks: true}, stays: true, anew: true, inject: func(_ context.Context, c *control) (func() error, error) {
		behind := c.place.others(c)[0]
		set := func(ahead time.Duration) {
			c.clock.set(ahead)
			behind.clock.set(-ahead)
		}
		set(skew)
		return func() error { set(0); return nil }, errors.Join(c.says(skew), behind.says(-skew))
	}},
	{name: "full-disk", setting: setting{disk: smallDisk}, stays: true, lasts: 15 * time.Second, inject: func(_ context.Context, c *control) (func() error, error) {
		var ends []func() error
		var err error
		for _, each := range c.place.controllers {
			free, failed := each.fill()
			err = errors.Join(err, failed)
			if failed == nil {
				ends = append(ends, free)
			}
		}
		return func() (err error) {
			for _, free := range ends {
				err = errors.Join(err, free())
			}
			return err
		}, err
	}},
}

// others returns all controllers but one.
func (p *place) others(c *control) []*control {
	return slices.DeleteFunc(slices.Clone(p.controllers), func(o *control) bool { return o == c })
}

func faultClaims(id string) []bench.Claim {
	return []bench.Claim{
		bench.NewClaim(id+"/leader", "time until there is a new leader", newLeader),
		bench.NewClaim(id+"/service", "time until a requested change is in the kernel", service),
		bench.NewClaim(id+"/enforced", "agents that did not keep the shaping in force during the fault", enforcers),
		bench.NewClaim(id+"/leaders", "times at which two controllers were the leader", leaders),
	}
}

func faultCases() (all []bench.Case) {
	for _, fault := range faults {
		id := "faults/" + fault.name
		all = append(all, bench.Case{
			Name:   id,
			Claims: faultClaims(id),
			Takes:  func(bool) time.Duration { return 30 * time.Second },
			// Each is waiting most of the time.
			Alongside: smoke("faults"),
			Run: func(ctx context.Context, r *bench.Run) (err error) {
				p, err := fault.build(ctx, 3)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, p.close()) }()
				e, leader, err := p.enforceAtLeader(ctx)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, e.close()) }()
				if _, err := e.changes(ctx, 2); err != nil {
					return err
				}
				return e.suffer(ctx, r.Sheet(bench.Ours), fault, leader)
			},
		})
	}
	return all
}

// enforceAtLeader starts an agent that is connected to the leader. An agent chooses a controller at
// random, and another if that one is unreachable: until it is connected it can reach only the leader.
func (p *place) enforceAtLeader(ctx context.Context) (e *enforcing, leader *control, err error) {
	if leader, err = p.leader(ctx); err != nil {
		return nil, nil, err
	}
	if err := p.isolate(ctx, "add", "unreachable", p.others(leader)); err != nil {
		return nil, nil, err
	}
	if e, err = p.enforce(ctx, heldGroup()); err != nil {
		return nil, nil, err
	}
	if _, err = p.connected(ctx, 1, startPatience); err != nil {
		err = fmt.Errorf("%w: %s", err, e.said)
	}
	err = errors.Join(err, p.isolate(ctx, "del", "unreachable", p.others(leader)))
	if err != nil {
		return nil, nil, errors.Join(err, e.close())
	}
	return e, leader, nil
}

// with returns an error unless the agent is connected to a controller that is the leader.
func (e *enforcing) with(ctx context.Context, leader *control) error {
	counts, _ := e.place.streams(ctx)
	if leads := slices.Contains(leading(ctx, e.place.controllers), leader); !leads || counts[leader.name] != 1 {
		return fmt.Errorf("before the fault: leader %s: %v; connected agents %v", leader.name, leads, counts)
	}
	return nil
}

// suffer injects a fault into the leader, and measures the effects.
func (e *enforcing) suffer(ctx context.Context, sheet *bench.Sheet, f fault, leader *control) error {
	id := "faults/" + f.name
	others := e.place.others(leader)
	next := others
	if f.stays {
		next = e.place.controllers
	}
	heard, err := listen(e.node)
	if err != nil {
		return err
	}
	defer heard.close()
	a := e.place.ask(others[0])
	a.client.Timeout = 2 * time.Second
	defer a.client.CloseIdleConnections()
	held, err := e.hold(ctx)
	if err != nil {
		return err
	}
	defer held.stop()
	if err := e.with(ctx, leader); err != nil {
		return err
	}
	injected := time.Now()
	over, err := f.inject(ctx, leader)
	if err != nil {
		return err
	}
	var ended time.Time
	watching, enough := context.WithCancel(ctx)
	watched := watchReign(watching, e.place.controllers, next)
	defer enough()
	if f.lasts > 0 {
		told := e.during(ctx, a, f.lasts)
		ended = time.Now()
		if err := over(); err != nil {
			return err
		}
		sheet.Note(id+"/service", "%s", told)
		over = func() error { return nil }
	}
	began := time.Now()
	if f.anew {
		e.kill()
		if err := e.start(ctx); err != nil {
			return errors.Join(err, over())
		}
	}
	const rate = 250 * unit.Mbit
	for {
		if _, err = a.must(ctx, http.MethodPatch, e.path+"/out/groups/web", map[string]any{"guarantee": rate.String()}); err == nil {
			break
		}
		if time.Since(began) > faultPatience {
			return errors.Join(err, over())
		}
		time.Sleep(50 * time.Millisecond)
	}
	answered := time.Since(began)
	at, err := heard.rate(rate, began.Add(faultPatience))
	if err != nil {
		return errors.Join(err, over())
	}
	sheet.Set(id+"/service", at.Sub(began).Seconds())
	sheet.Note(id+"/service", "the change was granted after %.1f s", answered.Seconds())
	for until := began.Add(faultPatience); !watched.led(began) && time.Now().Before(until); {
		time.Sleep(50 * time.Millisecond)
	}
	if ended.IsZero() {
		time.Sleep(time.Until(injected.Add(minFault)))
		ended = time.Now()
	}
	if err := over(); err != nil {
		return err
	}
	missed, err := held.missed(injected, ended)
	if err != nil {
		return err
	}
	setEnforced(sheet, id, missed)
	time.Sleep(afterFault)
	enough()
	watched.all.Wait()
	if !watched.led(began) {
		return errors.New("no new leader")
	}
	sheet.Set(id+"/leader", watched.without(began).Seconds())
	sheet.Set(id+"/leaders", float64(len(watched.twice)))
	if n := len(watched.twice); n > 0 {
		first, last := watched.twice[0], watched.twice[n-1]
		sheet.Note(id+"/leaders", "%s, %.2f to %.2f s after the start of the fault, which ended after %.2f s", first.who, first.at.Sub(injected).Seconds(), last.at.Sub(injected).Seconds(), ended.Sub(injected).Seconds())
	}
	return nil
}

// during requests changes while they are not possible, and describes the results.
func (e *enforcing) during(ctx context.Context, a *asking, lasts time.Duration) string {
	answers := map[string]int{}
	n := 0
	for until := time.Now().Add(lasts); time.Now().Before(until) && ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		n++
		status, _, err := a.do(ctx, http.MethodPatch, e.path+"/out/groups/web", map[string]any{"guarantee": (200 * unit.Mbit).String()})
		if err != nil {
			answers["no answer"]++
		} else {
			answers[fmt.Sprint(status)]++
		}
	}
	return fmt.Sprintf("results of %d changes requested during the fault: %v", n, answers)
}
