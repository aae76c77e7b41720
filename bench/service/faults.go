package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"time"

	"headgate/bench"
	"headgate/unit"
)

// Of the issue.
var (
	newLeader = bench.Target{Op: "<=", Value: 6, Unit: "s"}
	service   = bench.Target{Op: "<=", Value: 10, Unit: "s"}
	enforcers = bench.Target{Op: "<=", Value: 0, Unit: "agents"}
	leaders   = bench.Target{Op: "<=", Value: 0, Unit: "times"}
)

// Ours.
const (
	// faultPatience is how long is waited for a leader, and for a change to come to the kernel.
	faultPatience = 60 * time.Second
	// afterFault is how long leaders are counted once the fault is over.
	afterFault = 5 * time.Second
)

// faults are what becomes of the controller that leads; over ends it.
var faults = []struct {
	name   string
	inject func(ctx context.Context, c *control) (over func() error, err error)
}{
	{"kill", func(ctx context.Context, c *control) (func() error, error) {
		return func() error { return c.start(ctx) }, c.stop(syscall.SIGKILL)
	}},
	{"stop", func(_ context.Context, c *control) (func() error, error) {
		all := family(c.cmd.Process.Pid)
		send := func(signal syscall.Signal) (err error) {
			for _, pid := range all {
				err = errors.Join(err, syscall.Kill(pid, signal))
			}
			return err
		}
		return func() error { return send(syscall.SIGCONT) }, send(syscall.SIGSTOP)
	}},
	{"partition", func(ctx context.Context, c *control) (func() error, error) {
		// On the router's side, which has no route but that to the controller's link.
		link := func(state string) error {
			out, err := c.place.lab.Node("router").Command(ctx, "ip", "link", "set", "dev", c.name, state).CombinedOutput()
			if err != nil {
				return fmt.Errorf("ip link set %s: %w: %s", state, err, out)
			}
			return nil
		}
		return func() error { return link("up") }, link("down")
	}},
}

func faultClaims(id string) []bench.Claim {
	return []bench.Claim{
		bench.NewClaim(id+"/leader", "until there is a new leader", newLeader),
		bench.NewClaim(id+"/service", "until a change that is asked for is in the kernel", service),
		bench.NewClaim(id+"/enforced", "agents that did not go on enforcing", enforcers),
		bench.NewClaim(id+"/leaders", "times at which two said that they lead", leaders),
	}
}

func faultCases() (all []bench.Case) {
	for _, fault := range faults {
		id := "faults/" + fault.name
		all = append(all, bench.Case{
			Name:   id,
			Claims: faultClaims(id),
			Takes:  func(bool) time.Duration { return 40 * time.Second },
			Run: func(ctx context.Context, r *bench.Run) (err error) {
				p, err := build(ctx, 3)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, p.close()) }()
				e, err := p.enforce(ctx)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, e.close()) }()
				if _, err := e.changes(ctx, 2); err != nil {
					return err
				}
				leader, err := p.leader(ctx)
				if err != nil {
					return err
				}
				return e.suffer(ctx, r.Sheet(bench.Ours), id, leader, fault.inject)
			},
		})
	}
	return all
}

// suffer has the leader suffer a fault, and measures what comes of it.
func (e *enforcing) suffer(ctx context.Context, sheet *bench.Sheet, id string, leader *control, inject func(context.Context, *control) (func() error, error)) error {
	others := slices.DeleteFunc(slices.Clone(e.place.controllers), func(c *control) bool { return c == leader })
	heard, err := listen(e.node)
	if err != nil {
		return err
	}
	defer heard.close()
	began := time.Now()
	over, err := inject(ctx, leader)
	if err != nil {
		return err
	}
	counting, enough := context.WithCancel(ctx)
	twice := make(chan int, 1)
	go func() {
		two := 0
		for counting.Err() == nil {
			if len(leading(ctx, e.place.controllers)) > 1 {
				two++
			}
			time.Sleep(50 * time.Millisecond)
		}
		twice <- two
	}()
	defer enough()
	led := make(chan error, 1)
	var ledAfter time.Duration
	go func() {
		led <- func() error {
			for time.Since(began) < faultPatience {
				if len(leading(ctx, others)) > 0 {
					ledAfter = time.Since(began)
					return nil
				}
				time.Sleep(50 * time.Millisecond)
			}
			return errors.New("there is no new leader")
		}()
	}()
	const rate = 250 * unit.Mbit
	a := e.place.ask(others[0])
	a.client.Timeout = 2 * time.Second
	defer a.client.CloseIdleConnections()
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
	at, reached := heard.rate(rate, began.Add(faultPatience))
	if err := errors.Join(reached, <-led); err != nil {
		return errors.Join(err, over())
	}
	sheet.Set(id+"/leader", ledAfter.Seconds())
	sheet.Set(id+"/service", at.Sub(began).Seconds())
	sheet.Note(id+"/service", "the change was granted after %.1f s", answered.Seconds())
	enforced, err := e.enforces(ctx)
	if err != nil {
		return err
	}
	sheet.Set(id+"/enforced", map[bool]float64{true: 0, false: 1}[enforced])
	if err := over(); err != nil {
		return err
	}
	time.Sleep(afterFault)
	enough()
	sheet.Set(id+"/leaders", float64(<-twice))
	return nil
}

// enforces tells whether the host's groups are in force.
func (e *enforcing) enforces(ctx context.Context) (bool, error) {
	out, err := e.node.Command(ctx, "tc", "class", "show", "dev", "router").Output()
	return bytes.Count(out, []byte("class htb")) >= 3, err
}
