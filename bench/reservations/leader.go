package reservations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

func leaderCases() []bench.Case {
	return []bench.Case{{
		Name: "controller", Run: killLeader, Takes: bench.Takes(0, 4*time.Minute),
		Claims: []bench.Claim{
			bench.NewClaim("controller/lost", "datagrams of a reserved flow that are lost after one of three controllers, the leader, gets SIGKILL, the most of several times", noneLost),
			bench.NewClaim("controller/adapts", "from the kill until a flow that slept, and whose bandwidth was lent, has its rate again in a second: it wakes half a second after the kill; the worst of several times", adaptsAgain),
		},
	}}
}

func killLeader(ctx context.Context, r *bench.Run) error {
	if r.Quick && !r.Few {
		return errFull
	}
	var lost, adapts []float64
	var notes []string
	for range bench.Pick(r.Quick, 1, 4) {
		l, a, note, err := killOnce(ctx)
		if err != nil {
			return err
		}
		lost, adapts, notes = append(lost, l), append(adapts, a), append(notes, note)
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set("controller/lost", slices.Max(lost))
	sheet.Set("controller/adapts", slices.Max(adapts))
	sheet.Note("controller/lost", "%s", notes[len(notes)-1])
	sheet.Note("controller/adapts", "%d times, median %s s", len(adapts), bench.Number(bench.Median(adapts)))
	sheet.Keep("lost", lost)
	sheet.Keep("adapts", adapts)
	return nil
}

func killOnce(ctx context.Context) (lost, adapts float64, note string, err error) {
	d := dumbbell(50*unit.Mbit, 3)
	d.three = true
	n, err := d.up(ctx)
	if err != nil {
		return 0, 0, "", err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	const held = 15 * unit.Mbit
	if err := n.reserve(ctx,
		promise{name: "steady", from: "h1", to: "h4", rate: held, class: 2, protocol: "udp", port: 5001},
		promise{name: "sleeper", from: "h2", to: "h5", rate: held, class: 1, protocol: "udp", port: 5002}); err != nil {
		return 0, 0, "", err
	}
	// Open vSwitch writes the role into its database every 5 s.
	var leader *controllers.Controller
	for limit := time.Now().Add(15 * time.Second); leader == nil; {
		if leader, err = n.leader(ctx); err != nil && time.Now().After(limit) {
			return 0, 0, "", err
		}
		if err := bench.Sleep(ctx, 500*time.Millisecond); err != nil {
			return 0, 0, "", err
		}
	}
	const kill, length = 12 * time.Second, 30 * time.Second
	flows := []traffic.Flow{
		{Name: "steady", From: "h1", To: "h4", Protocol: traffic.UDP, DstPort: 5001, Schedule: traffic.Constant(held * 95 / 100)},
		{Name: "sleeper", From: "h2", To: "h5", Protocol: traffic.UDP, DstPort: 5002, Schedule: []traffic.Step{{Rate: held / 50}, {At: kill + 500*time.Millisecond, Rate: held * 95 / 100}}},
		{Name: "rest", From: "h3", To: "h6", Protocol: traffic.UDP, DstPort: 6000, Schedule: traffic.Constant(60 * unit.Mbit)},
	}
	session, err := traffic.Start(ctx, n.Host, flows, traffic.Options{Duration: length, Interval: 100 * time.Millisecond})
	if err != nil {
		return 0, 0, "", err
	}
	killed := bench.Sleep(ctx, kill)
	if killed == nil {
		killed = leader.Stop(syscall.SIGKILL)
	}
	result := session.Wait()
	if err := errors.Join(killed, ctx.Err()); err != nil {
		return 0, 0, "", err
	}
	steady, sleeper := result.Flow("steady"), result.Flow("sleeper")
	if lent := result.Flow("rest").Between(kill-3*time.Second, kill).DeliveredRate(); lent < 1.3*float64(50*unit.Mbit-2*held) {
		return 0, 0, "", fmt.Errorf("nothing was lent before the kill: the rest has %v", unit.Rate(lent))
	}
	before, after := steady.Between(2*time.Second, kill), steady.Between(kill, length)
	took := length - kill
	for at := kill + 500*time.Millisecond; at < length-time.Second; at += 100 * time.Millisecond {
		if sleeper.Between(at, at+time.Second).DeliveredRate() >= 0.95*0.95*float64(held) {
			took = at + time.Second - kill
			break
		}
	}
	note = fmt.Sprintf("%d of %d datagrams were lost after the kill, and %d of %d before", after.LostDatagrams, after.Datagrams, before.LostDatagrams, before.Datagrams)
	return float64(after.LostDatagrams), took.Seconds(), note, nil
}

// leader returns the controller that a switch has as its master.
func (n *network) leader(ctx context.Context) (*controllers.Controller, error) {
	out, err := n.Switch("s1").Command(ctx, "ovs-vsctl", "--timeout=10", "--no-headings", "--format=csv", "--columns=target,role", "list", "controller").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("ovs-vsctl: %w: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		target, role, _ := strings.Cut(strings.TrimSpace(line), ",")
		if role != "master" {
			continue
		}
		for _, c := range n.place.Controllers {
			a, err := n.ManagementAddr(c.Name)
			if err == nil && strings.Contains(target, a.String()+":") {
				return c, nil
			}
		}
	}
	return nil, fmt.Errorf("no controller is the master: %s", out)
}
