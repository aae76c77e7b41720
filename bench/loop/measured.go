package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

var (
	part99  = bench.Target{Op: ">=", Value: 99, Unit: "%"}
	below80 = bench.Target{Op: "<=", Value: 80, Unit: "%"}
	foundIt = bench.Target{Op: ">=", Value: 1, Unit: "links"}
	noWrong = bench.Target{Op: "<=", Value: 0, Unit: "links"}
)

// limited is a case of sites whose link the provider limits.
type limited struct {
	id, what string
	rate     unit.Rate // of the port
	bucket   unit.Bytes
	police   bool
	delay    time.Duration
}

var limiters = []limited{
	{"shaper-50", "a shaper of 30 Mbit/s behind a port of 50 Mbit/s", 50 * unit.Mbit, 30_000, false, 0},
	{"shaper-200", "a shaper of 120 Mbit/s behind a port of 200 Mbit/s, 20 ms of round-trip time", 200 * unit.Mbit, 500_000, false, 10 * time.Millisecond},
	{"policer-50", "a policer of 30 Mbit/s behind a port of 50 Mbit/s, 20 ms of round-trip time", 50 * unit.Mbit, 200_000, true, 10 * time.Millisecond},
}

// tokens is what the limiter gives: 60 % of the port.
func (l limited) tokens() unit.Rate { return l.rate * 6 / 10 }

func measuredCases() (all []bench.Case) {
	for _, l := range limiters {
		id := "measured/" + l.id
		all = append(all, bench.Case{
			Name: id, Run: l.run, Takes: bench.Takes(bench.Pick(l.smoke(), 100*time.Second, 0), 5*time.Minute),
			Claims: []bench.Claim{
				bench.NewClaim(id+"/unaware", "what a reservation of 80 % of the port gets of it, beside as much that is not reserved, while the limiter is not known: "+l.what, below80),
				bench.NewClaim(id+"/found", "links that the schedule finds in the direction of the reservation, of the one with the limiter", foundIt),
				bench.NewClaim(id+"/back", "links that it finds in the other direction", bench.Target{Op: bench.Measured, Unit: "links"}),
				bench.NewClaim(id+"/wrong", "other links that it takes to be weak, or that are suspected with it", noWrong),
				bench.NewClaim(id+"/error", "difference of the measured capacity from that of the limiter", bench.Target{Op: bench.Measured, Unit: "%"}),
				bench.NewClaim(id+"/corrected", "the same after the load of the next row, during which what arrives corrects it", bench.Target{Op: bench.Measured, Unit: "%"}),
				bench.NewClaim(id+"/time", "from the schedule until the measured capacity is in force, with one measurement of each pair of four hosts", bench.Target{Op: bench.Measured, Unit: "s"}),
				bench.NewClaim(id+"/within", "what a reservation of 90 % of the measured capacity gets of it, beside as much that is not reserved", part99),
			},
		})
	}
	return all
}

// smoke reports whether a smoke run has the case.
func (l limited) smoke() bool { return l.id == limiters[0].id }

func (l limited) sites() sites {
	return sites{rate: l.rate, delay: l.delay, bucket: &link.Bucket{Rate: l.tokens(), Size: l.bucket, Police: l.police}, agents: []string{"a1", "a2", "b1", "b2"}}
}

func (l limited) run(ctx context.Context, r *bench.Run) (err error) {
	if r.Quick && !r.Few && !l.smoke() {
		return errFull
	}
	n, err := l.sites().up(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	id, sheet := "measured/"+l.id, r.Sheet(bench.Ours)
	length := bench.Pick(r.Quick, 8*time.Second, 30*time.Second)
	unaware := l.rate * 8 / 10
	part, note, err := n.promised(ctx, unaware, length)
	if err != nil {
		return err
	}
	sheet.Set(id+"/unaware", part)
	sheet.Note(id+"/unaware", "%s", note)
	began := time.Now()
	if err := n.apply(ctx, "schedule.yaml", "measures: [{measure: path, every: 12h}]\nbytes: 20MB\nbudget: 2GB\nhosts: [{host: a1, links: [wan]}, {host: a2, links: [wan]}, {host: b1, links: [wan]}, {host: b2, links: [wan]}]\n", "probe", "schedule", "set", "-f"); err != nil {
		return err
	}
	if err := l.sites().configure(ctx, n, "apply_measured: 50%\n"); err != nil {
		return err
	}
	state, results, err := n.measured(ctx, 4*time.Minute)
	if err != nil {
		return err
	}
	sheet.Set(id+"/time", time.Since(began).Seconds())
	sheet.Keep("results", results)
	capacity, back, wrong := l.inForce(state, 1), l.inForce(state, 2), 0
	for _, f := range state.Faults {
		if f.Kind == api.FaultWeakLink && !strings.Contains(f.Message, "is in force") {
			wrong++
		}
	}
	sheet.Set(id+"/found", bench.Pick(capacity > 0, 1., 0))
	sheet.Set(id+"/back", bench.Pick(back > 0, 1., 0))
	sheet.Set(id+"/wrong", float64(wrong))
	if capacity == 0 {
		return fmt.Errorf("no capacity was measured: %+v", state.Faults)
	}
	sheet.Set(id+"/error", l.error(capacity))
	if part, note, err = n.promised(ctx, capacity*9/10, length); err != nil {
		return err
	}
	sheet.Set(id+"/within", part)
	sheet.Note(id+"/within", "%s", note)
	if state, err = n.controller().Show(ctx); err != nil {
		return err
	}
	sheet.Set(id+"/corrected", l.error(l.inForce(state, 1)))
	return nil
}

// inForce returns the measured capacity that is in force of the link that begins at a switch, 0 if there is none.
func (l limited) inForce(state api.Network, from uint64) unit.Rate {
	for _, link := range state.Links {
		if link.CapacitySource == api.CapacityMeasured && link.From.Switch == fabric.DPID(from).String() {
			return unit.Rate(link.CapacityBps)
		}
	}
	return 0
}

// error returns by how many percent a rate differs from the limiter's.
func (l limited) error(rate unit.Rate) float64 { return 100 * (float64(rate)/float64(l.tokens()) - 1) }

// measured waits until the schedule has measured each pair, and returns the network and the results then.
func (n *network) measured(ctx context.Context, patience time.Duration) (state api.Network, results []json.RawMessage, err error) {
	const pairs = 4 * 3
	for limit := time.Now().Add(patience); ; {
		results = nil // the command fails without any
		if text, err := n.controller().Headgate(ctx, "probe", "results", "-o", "json"); err == nil {
			if err := json.Unmarshal(text, &results); err != nil {
				return state, nil, err
			}
		}
		if len(results) >= pairs || time.Now().After(limit) {
			// What the last result shows is looked at within 5 s.
			if err := bench.Sleep(ctx, 6*time.Second); err != nil {
				return state, nil, err
			}
			state, err = n.controller().Show(ctx)
			return state, results, err
		}
		if err := bench.Sleep(ctx, 500*time.Millisecond); err != nil {
			return state, nil, err
		}
	}
}

// promised reserves a rate from a1 to b1, sends it, and as much from a2 to b2 without a reservation, and returns what part of the reservation arrived.
func (n *network) promised(ctx context.Context, rate unit.Rate, length time.Duration) (part float64, note string, err error) {
	if err := n.reserve(ctx, "flow", "a1", "b1", "udp", "5001", rate, 1); err != nil {
		return 0, "", err
	}
	flows := []traffic.Flow{
		{Name: "flow", From: "a1", To: "b1", Protocol: traffic.UDP, DstPort: 5001, Schedule: traffic.Constant(rate)},
		{Name: "rest", From: "a2", To: "b2", Protocol: traffic.UDP, DstPort: 5002, Schedule: traffic.Constant(rate)},
	}
	session, err := traffic.Start(ctx, n.Host, flows, traffic.Options{Duration: length, Interval: time.Second})
	if err != nil {
		return 0, "", err
	}
	result := session.Wait()
	if ctx.Err() != nil {
		return 0, "", ctx.Err()
	}
	got, rest := result.Flow("flow").Total.DeliveredRate(), result.Flow("rest").Total.DeliveredRate()
	_, err = n.controller().Headgate(ctx, "reserve", "cancel", "flow")
	return 100 * got / float64(rate), fmt.Sprintf("%v of %v, and %v that is not reserved", unit.Rate(got), rate, unit.Rate(rest)), err
}
