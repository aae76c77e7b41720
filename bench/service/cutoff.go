package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/unit"
)

// goesOn is how long a disconnected agent is observed after it has repaired the shaping.
const goesOn = 5 * time.Second

// cutOffCases has one case: an agent that cannot reach any controller, on whose host another program
// deletes a qdisc meanwhile. The controllers are otherwise unaffected.
func cutOffCases() []bench.Case {
	const id = "faults/cut-off"
	return []bench.Case{{
		Name: id,
		Claims: []bench.Claim{
			bench.NewClaim(id+"/enforced", "agents that, disconnected from all controllers, did not keep the shaping in force or did not restore a deleted qdisc", enforcers),
			bench.NewClaim(id+"/mended", "time until a deleted qdisc is restored, with its classes", bench.Target{Op: bench.Measured, Unit: "s"}),
			bench.NewClaim(id+"/service", "time from the end of the fault until a change requested during it is in the kernel", service),
		},
		Takes:     func(bool) time.Duration { return 40 * time.Second },
		Alongside: smoke("last"),
		Run: func(ctx context.Context, r *bench.Run) (err error) {
			p, err := build(ctx, 3)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, p.close()) }()
			e, err := p.enforce(ctx, heldGroup())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, e.close()) }()
			if _, err := e.changes(ctx, 2); err != nil {
				return err
			}
			return e.goAlone(ctx, r.Sheet(bench.Ours), id)
		},
	}}
}

// goAlone disconnects the agent for a while, and measures its behaviour.
func (e *enforcing) goAlone(ctx context.Context, sheet *bench.Sheet, id string) error {
	held, err := e.hold(ctx)
	if err != nil {
		return err
	}
	defer held.stop()
	from, said := time.Now(), e.misses()
	if err := e.place.isolate(ctx, "add", "blackhole", e.place.controllers); err != nil {
		return err
	}
	if err := e.alone(ctx, said); err != nil {
		return err
	}
	const rate = 250 * unit.Mbit
	heard, err := listen(e.node)
	if err != nil {
		return err
	}
	defer heard.close()
	a := e.place.ask(e.place.controllers[0])
	defer a.client.CloseIdleConnections()
	if _, err := a.must(ctx, http.MethodPatch, e.path+"/out/groups/web", map[string]any{"guarantee": rate.String()}); err != nil {
		return err
	}
	if _, err := heard.rate(rate, time.Now().Add(2*time.Second)); err == nil {
		return errors.New("the agent received a change: it is not disconnected")
	}
	deleted := time.Now()
	if out, err := e.node.Command(ctx, "tc", "qdisc", "del", "dev", e.dev, "root").CombinedOutput(); err != nil {
		return fmt.Errorf("tc qdisc del: %w: %s", err, out)
	}
	mended, err := held.mended(ctx, deleted)
	if err != nil {
		return err
	}
	time.Sleep(goesOn)
	ended := time.Now()
	if err := e.place.isolate(ctx, "del", "blackhole", e.place.controllers); err != nil {
		return err
	}
	at, err := heard.rate(rate, ended.Add(faultPatience))
	if err != nil {
		return fmt.Errorf("%w: %s", err, e.said)
	}
	sheet.Set(id+"/service", at.Sub(ended).Seconds())
	missed, err := held.missed(from, deleted)
	if err != nil {
		return err
	}
	if mended.IsZero() {
		missed = append(missed, fmt.Sprintf("the deleted qdisc was not restored within %v", faultPatience))
	} else {
		sheet.Set(id+"/mended", mended.Sub(deleted).Seconds())
		later, err := held.missed(mended, ended)
		if err != nil {
			return err
		}
		missed = append(missed, later...)
	}
	setEnforced(sheet, id, missed)
	return nil
}

// isolate makes the router drop packets between the host and some controllers ("add"), or stop doing
// so ("del"): silently (how is "blackhole"), or with an ICMP error ("unreachable").
func (p *place) isolate(ctx context.Context, do, how string, from []*control) error {
	host, err := p.lab.Node("host").Addr(false)
	if err != nil {
		return err
	}
	return p.rules(ctx, do, how, between(host.String(), from))
}

// between returns the ways between an address and some controllers, from the first to the second of a pair.
func between(address string, controllers []*control) (ways [][2]string) {
	for _, c := range controllers {
		ways = append(ways, [2]string{address, c.address}, [2]string{c.address, address})
	}
	return ways
}

// rules adds or deletes the router's rules for packets on some ways (isolate).
func (p *place) rules(ctx context.Context, do, how string, ways [][2]string) error {
	for _, way := range ways {
		if err := p.router(ctx, "rule", do, "from", way[0], "to", way[1], how); err != nil {
			return err
		}
	}
	return nil
}

// router runs ip(8) on the router.
func (p *place) router(ctx context.Context, args ...string) error {
	if out, err := p.lab.Node("router").Command(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// misses returns how often the agent has logged that it is disconnected.
func (e *enforcing) misses() int {
	return strings.Count(e.said.String(), "disconnected from controller")
}

// alone waits until the agent logs that again, and no controller has it.
func (e *enforcing) alone(ctx context.Context, said int) error {
	for until := time.Now().Add(faultPatience); e.misses() <= said; time.Sleep(50 * time.Millisecond) {
		if ctx.Err() != nil || time.Now().After(until) {
			return fmt.Errorf("the agent has not noticed that it is disconnected: %s", e.said)
		}
	}
	return e.place.left(ctx)
}

// mended waits until there are as many classes as at the beginning, and returns the time, or zero if
// that does not happen.
func (h *holding) mended(ctx context.Context, since time.Time) (time.Time, error) {
	for until := since.Add(faultPatience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		now, err := h.host.look()
		if err != nil || ctx.Err() != nil {
			return time.Time{}, errors.Join(err, ctx.Err())
		}
		if now.classes >= h.classes {
			return now.at, nil
		}
	}
	return time.Time{}, nil
}
