package reservations

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// beside is a case of TCP with a reservation of 20 Mbit/s, beside greedy UDP.
type beside struct {
	point  string // switch, router or host
	rtt    time.Duration
	rivals int
	target bench.Target
}

var besides = []beside{
	{"switch", 0, 1, metered}, {"switch", 20 * time.Millisecond, 8, metered},
	{"router", 0, 1, shaped}, {"router", 20 * time.Millisecond, 8, shaped},
	{"host", 0, 1, shaped}, {"host", 20 * time.Millisecond, 8, shaped},
}

func (b beside) id() string {
	return fmt.Sprintf("tcp/%s/%dms-%d", b.point, b.rtt.Milliseconds(), b.rivals)
}

func tcpCases() (all []bench.Case) {
	for _, b := range besides {
		all = append(all, bench.Case{
			Name: b.id(), Run: b.run, Takes: bench.Takes(bench.Pick(b.smoke(), 16*time.Second, 0), 75*time.Second),
			Claims: []bench.Claim{bench.NewClaim(b.id(), fmt.Sprintf("what a connection gets of its reservation of 20 Mbit/s, from its first second on: a %s holds it, %v of round-trip time, %d senders of greedy UDP on the link of 50 Mbit/s", b.point, b.rtt, b.rivals), b.target)},
		})
	}
	return all
}

// smoke reports whether a smoke run has the case.
func (b beside) smoke() bool { return b.point == "router" && b.rivals == 1 }

func (b beside) run(ctx context.Context, r *bench.Run) (err error) {
	if r.Quick && !r.Few && !b.smoke() {
		return errFull
	}
	const line, held = 50 * unit.Mbit, 20 * unit.Mbit
	d := dumbbell(line, 2)
	d.routers = b.point == "router"
	if b.point == "host" {
		d.agents = []string{"h1"}
	}
	d.hosts[2].delay = b.rtt / 2
	n, err := d.up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	if err := n.reserve(ctx, promise{name: "copy", from: "h1", to: "h3", rate: held, class: 1, protocol: "tcp", port: 5001}); err != nil {
		return err
	}
	flows := []traffic.Flow{{Name: "copy", From: "h1", To: "h3", Protocol: traffic.TCP, Congestion: "cubic", DstPort: 5001, Start: 2 * time.Second, Schedule: traffic.Constant(2 * held)}}
	for k := range b.rivals {
		flows = append(flows, traffic.Flow{Name: fmt.Sprint("greedy", k+1), From: "h2", To: "h4", Protocol: traffic.UDP, DstPort: uint16(6001 + k), Schedule: traffic.Constant(line * 6 / 5 / unit.Rate(b.rivals))})
	}
	length := bench.Pick(r.Quick, 10*time.Second, 60*time.Second)
	session, err := traffic.Start(ctx, n.Host, flows, traffic.Options{Duration: length, Interval: time.Second})
	if err != nil {
		return err
	}
	result := session.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f := result.Flow("copy")
	sum := f.Between(2*time.Second, length)
	sheet := r.Sheet(bench.Ours)
	sheet.Set(b.id(), 100*sum.DeliveredRate()/float64(held))
	others := 0.0
	for k := range b.rivals {
		others += result.Flow(fmt.Sprint("greedy", k+1)).Between(2*time.Second, length).DeliveredRate()
	}
	sheet.Note(b.id(), "it has %v and retransmitted %d segments; the others have %v", unit.Rate(sum.DeliveredRate()), sum.Retransmits, unit.Rate(others))
	var seconds []float64
	for _, i := range f.Intervals {
		seconds = append(seconds, math.Round(i.DeliveredRate()))
	}
	sheet.Keep("seconds", seconds)
	return nil
}
