package lab

import (
	"context"
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

const costID = "cost/1Gbit/50ms"

func costCases() []bench.Case {
	return []bench.Case{{
		Name: costID, Run: runCost, Takes: takes(4*time.Second, 12*time.Second),
		Claims: []bench.Claim{bench.NewClaim(costID, "processor time of both of the emulator's threads while one TCP connection fills 1 Gbit/s", costCore)},
	}}
}

// runCost excludes slow start.
func runCost(ctx context.Context, r *bench.Run) error {
	const rtt = 50 * time.Millisecond
	return with(ctx, symmetric(unit.Gbit, rtt), func(l *lab.Lab) error {
		const settle = 2 * time.Second
		length := bench.Pick(r.Quick, 2*time.Second, 10*time.Second)
		const interval = 250 * time.Millisecond
		var before, after cpuTime
		n := 0
		got, err := flowsAlone(ctx, l, []traffic.Flow{filling(unit.Gbit, rtt)}, traffic.Options{Duration: settle + length, Interval: interval, OnInterval: func([]traffic.FlowInterval) {
			after = emulatorTime(l)
			if n++; n == int(settle/interval) {
				before = after
			}
		}})
		if err != nil {
			return err
		}
		used, seconds := after.cpu-before.cpu, (after.at - before.at).Seconds()
		rate := got.Flow("f").Between(settle, settle+length).DeliveredRate()
		if err := filled(rate, unit.Gbit); err != nil {
			return err
		}
		sheet := r.Sheet(bench.Ours)
		sheet.Set(costID, 100*used/seconds)
		sheet.Note(costID, "the connection got %s Mbit/s of layer 2", bench.Number(rate/1e6))
		lateness(sheet, l, costID)
		return nil
	})
}

// filled returns an error if the link was not full: then the measured cost is not that of a full link.
func filled(got float64, rate unit.Rate) error {
	if got < 0.95*float64(rate) {
		return fmt.Errorf("the connection got only %s Mbit/s of the link's %v: the machine had not enough processor time", bench.Number(got/1e6), rate)
	}
	return nil
}

// cpuTime returns the processor time of the emulator's threads until now, in seconds.
type cpuTime struct {
	cpu float64
	at  time.Duration
}

func emulatorTime(l *lab.Lab) (t cpuTime) {
	t.at = time.Duration(traffic.MonotonicNow())
	stats, _ := l.WireStats(0)
	for _, s := range stats {
		t.cpu += s.CPU().Seconds()
	}
	return t
}
