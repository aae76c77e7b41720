package loop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

var within5 = bench.Target{Op: "<=", Value: 5, Unit: "%"}

// weights are those of an application's connections, and shrinks the rates of its reservation, one after the other.
var (
	weights = []float64{4, 2, 1}
	shrinks = []unit.Rate{28 * unit.Mbit, 14 * unit.Mbit, 7 * unit.Mbit}
)

// proportioned is a case of who holds the reservation.
type proportioned struct {
	id, what string
	agents   []string
}

var proportions = []proportioned{
	{"host", "its host holds the reservation", []string{"a1"}},
	{"switch", "a switch holds the reservation", nil},
}

func proportionCases() (all []bench.Case) {
	for i, p := range proportions {
		id := "proportion/" + p.id
		all = append(all, bench.Case{
			Name: id, Run: p.run, Takes: bench.Takes(bench.Pick(i == 0, 70*time.Second, 0), 4*time.Minute),
			Claims: []bench.Claim{
				bench.NewClaim(id+"/ratio", "by how much the rate of a connection differs from its part of 4:2:1 at most, in a reservation that shrinks from 28 to 14 and 7 Mbit/s, beside greedy UDP of a higher class on a link of 50 Mbit/s: "+p.what, within5),
				bench.NewClaim(id+"/plain", "the same without a collective set", bench.Target{Op: bench.Measured, Unit: "%"}),
				bench.NewClaim(id+"/total", "the least that the three get of their reservation", bench.Target{Op: bench.Measured, Unit: "%"}),
			},
		})
	}
	return all
}

func (p proportioned) run(ctx context.Context, r *bench.Run) (err error) {
	if r.Quick && !r.Few && p.id != proportions[0].id {
		return errFull
	}
	n, err := sites{rate: 50 * unit.Mbit, delay: 5 * time.Millisecond, agents: p.agents}.up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	id, sheet := "proportion/"+p.id, r.Sheet(bench.Ours)
	step := bench.Pick(r.Quick, 8*time.Second, 30*time.Second)
	plain, _, _, err := n.shrink(ctx, step)
	if err != nil {
		return err
	}
	sheet.Set(id+"/plain", plain)
	end, err := n.hold(ctx)
	if err != nil {
		return err
	}
	worst, total, note, err := n.shrink(ctx, step)
	if err = errors.Join(err, end()); err != nil {
		return err
	}
	sheet.Set(id+"/ratio", worst)
	sheet.Note(id+"/ratio", "%s", note)
	sheet.Set(id+"/total", total)
	return nil
}

// hold holds the connections from a1 to ports 5001 to 5003 in proportion, as a user would, until end is called.
func (n *network) hold(ctx context.Context) (end func() error, err error) {
	text := "kind: Collective\nname: app\ncgroup: /\nmatch:\n"
	for i, w := range weights {
		text += fmt.Sprintf("  - {dst: %v/32, dport: %d, weight: %g}\n", n.addr["b1"], 5001+i, w)
	}
	file := filepath.Join(n.place.Dir, "collective.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	said := &bench.Tail{Keep: 1 << 16}
	c := n.Node("a1").Command(context.Background(), self, "collective", "run", "-f", file, "--instance", n.Topology.Name)
	c.Stderr = said
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() error {
		if err := controllers.Terminate(c); err != nil {
			return fmt.Errorf("headgate collective run: %w: %s", err, bench.LastLines(said.String()))
		}
		return nil
	}, bench.Sleep(ctx, 2*time.Second)
}

// shrink sends over three connections inside a reservation that shrinks, beside greedy UDP, and returns by how many percent a connection differs from its part
// at most, and the least that all have of the reservation. The first third of each step is not counted.
func (n *network) shrink(ctx context.Context, step time.Duration) (worst, total float64, note string, err error) {
	run := func(args ...string) error { _, err := n.controller().Headgate(ctx, args...); return err }
	if err := n.reserve(ctx, "app", "a1", "b1", "tcp", "5001-5003", shrinks[0], 2); err != nil {
		return 0, 0, "", err
	}
	// A reservation of a higher class gets what is spare, or the application would borrow it.
	if err := n.reserve(ctx, "greedy", "a2", "b2", "udp", "6001", 20*unit.Mbit, 1); err != nil {
		return 0, 0, "", err
	}
	flows := []traffic.Flow{{Name: "greedy", From: "a2", To: "b2", Protocol: traffic.UDP, DstPort: 6001, Schedule: traffic.Constant(60 * unit.Mbit)}}
	for i := range weights {
		flows = append(flows, traffic.Flow{Name: fmt.Sprint("app", i), From: "a1", To: "b1", Protocol: traffic.TCP, Congestion: "cubic", DstPort: uint16(5001 + i), Schedule: traffic.Constant(60 * unit.Mbit)})
	}
	session, err := traffic.Start(ctx, n.Host, flows, traffic.Options{Duration: step * time.Duration(len(shrinks)), Interval: time.Second})
	if err != nil {
		return 0, 0, "", err
	}
	began := time.Now()
	for i, rate := range shrinks[1:] {
		err = errors.Join(err, bench.Sleep(ctx, time.Until(began.Add(step*time.Duration(i+1)))), run("reserve", "change", "app", "--rate", rate.String()))
	}
	result := session.Wait()
	if err = errors.Join(err, ctx.Err(), run("reserve", "cancel", "app"), run("reserve", "cancel", "greedy")); err != nil {
		return 0, 0, "", err
	}
	total = math.Inf(1)
	for i, reserved := range shrinks {
		from, to := step*time.Duration(i)+step/3, step*time.Duration(i+1)
		var got []float64
		sum := 0.0
		for k := range weights {
			got = append(got, result.Flow(fmt.Sprint("app", k)).Between(from, to).DeliveredRate())
			sum += got[k]
		}
		for k, w := range weights {
			worst = max(worst, 100*math.Abs(got[k]/sum*7/w-1))
		}
		total = min(total, 100*sum/float64(reserved))
		note += fmt.Sprintf("with %v: %v, %v, %v; ", reserved, unit.Rate(got[0]), unit.Rate(got[1]), unit.Rate(got[2]))
	}
	return worst, total, note, nil
}
