package loop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/unit"
)

var (
	s1 = bench.Target{Op: "<=", Value: 1, Unit: "s"}
	s3 = bench.Target{Op: "<=", Value: 3, Unit: "s"}
)

// death is who is killed.
type death struct {
	id, what string
	kill     func(*network) error
}

var deaths = []death{
	{"near", "the near agent gets SIGKILL", func(n *network) error { return n.kill(near) }},
	{"far", "the far agent gets SIGKILL", func(n *network) error { return n.kill(far) }},
	{"near-host", "the line of the near agent's host passes nothing any more", func(n *network) error { return n.unplug(near) }},
	{"far-host", "the line of the far agent's host passes nothing any more", func(n *network) error { return n.unplug(far) }},
	{"controller", "the only controller gets SIGKILL", func(n *network) error { return n.controller().Stop(syscall.SIGKILL) }},
}

func directCases() (all []bench.Case) {
	for _, d := range deaths {
		id := "direct/" + d.id
		all = append(all, bench.Case{
			Name: id, Run: d.run, Takes: bench.Takes(30*time.Second, time.Minute),
			Claims: []bench.Claim{
				bench.NewClaim(id+"/new", "from the death until the beginning of the last connection that was not answered within a second, of one that begins each 20 ms, the worst of several times: "+d.what, s1),
				bench.NewClaim(id+"/standing", "from the death until each connection that was open has ended, or answered again: the worst; one sends each 100 ms, one only receives", s3),
			},
		})
	}
	return all
}

func (d death) run(ctx context.Context, r *bench.Run) error {
	var fresh, standing []float64
	for range bench.Pick(r.Quick, 1, 3) {
		f, s, err := d.once(ctx)
		if err != nil {
			return err
		}
		fresh, standing = append(fresh, f), append(standing, s)
	}
	id := "direct/" + d.id
	sheet := r.Sheet(bench.Ours)
	for name, all := range map[string][]float64{"/new": fresh, "/standing": standing} {
		sheet.Set(id+name, percentile(all, 100))
		sheet.Note(id+name, "%d times, median %s s", len(all), bench.Number(bench.Median(all)))
	}
	return nil
}

// unplug lets the device of a host pass nothing.
func (n *network) unplug(name string) error {
	at := map[string]string{near: "s1", far: "s2"}[name]
	dev, err := n.Node(name).Device(at)
	if err != nil {
		return err
	}
	// The port of the switch stays up, as behind a switch that is not ours.
	for _, rule := range [][]string{{"add", "table", "netdev", "cut"}, {"add", "chain", "netdev", "cut", "in", "{ type filter hook ingress device " + dev + " priority -500; policy drop; }"}, {"add", "chain", "netdev", "cut", "out", "{ type filter hook egress device " + dev + " priority -500; policy drop; }"}} {
		if out, err := n.Node(name).Command(context.Background(), "nft", rule...).CombinedOutput(); err != nil {
			return fmt.Errorf("nft: %w: %s", err, out)
		}
	}
	return nil
}

// once kills, and returns for how long new connections were not answered, and until when those that were open hung, in seconds.
func (d death) once(ctx context.Context) (fresh, standing float64, err error) {
	n, err := design{paths: [2]path{{50 * unit.Mbit, 5 * time.Millisecond, 0}, {50 * unit.Mbit, 5 * time.Millisecond, 0}}}.up(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	to := netip.AddrPortFrom(n.addr[server], relayedPort)
	e, err := listen(n.Node(server), to)
	if err != nil {
		return 0, 0, err
	}
	defer e.listener.Close()
	if err := n.relay(ctx); err != nil {
		return 0, 0, err
	}
	const hang = 12 * time.Second // for how long is waited for an end
	var mu sync.Mutex
	var all sync.WaitGroup
	var last, slowest time.Time
	running, end := context.WithCancel(ctx) // what has begun is waited for after it
	defer end()
	latest := func(t *time.Time, at time.Time) {
		mu.Lock()
		defer mu.Unlock()
		if at.After(*t) {
			*t = at
		}
	}
	// Some send, and others only receive.
	for i := range 4 {
		c, _, err := ping(ctx, n.Node(client), to, 5*time.Second)
		if err != nil {
			return 0, 0, err
		}
		defer c.Close()
		all.Go(func() {
			for running.Err() == nil {
				var err error
				began := time.Now()
				if i%2 == 0 {
					err = again(c, hang)
				} else {
					_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
					_, err = c.Read(make([]byte, 1))
					var late interface{ Timeout() bool }
					if errors.As(err, &late) && late.Timeout() {
						continue
					}
				}
				if took := time.Since(began); err != nil || took > 500*time.Millisecond {
					latest(&slowest, time.Now())
				}
				if err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			if err := again(c, time.Second); err != nil { // nothing had told it
				latest(&slowest, time.Now())
			}
		})
	}
	all.Go(func() {
		for running.Err() == nil {
			began := time.Now()
			all.Go(func() {
				c, took, err := ping(ctx, n.Node(client), to, hang)
				if err == nil {
					c.Close()
				}
				if err != nil || took > time.Second {
					latest(&last, began)
				}
			})
			time.Sleep(20 * time.Millisecond)
		}
	})
	time.Sleep(2 * time.Second)
	if !last.IsZero() {
		end()
		all.Wait()
		return 0, 0, errors.New("connections were not answered within a second before the death")
	}
	at := time.Now()
	if err := d.kill(n); err != nil {
		end()
		all.Wait()
		return 0, 0, err
	}
	time.Sleep(8 * time.Second)
	end()
	all.Wait()
	mu.Lock()
	defer mu.Unlock()
	after := func(t time.Time) float64 { return max(t.Sub(at).Seconds(), 0) }
	if d.id != "controller" && slowest.IsZero() {
		return 0, 0, errors.New("no connection that was open noticed the death: they were not redirected")
	}
	return after(last), after(slowest), nil
}
