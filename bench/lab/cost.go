package lab

import (
	"context"
	"time"

	"headgate/bench"
	"headgate/lab"
	"headgate/lab/traffic"
	"headgate/unit"
)

const costID = "cost/1Gbit/50ms"

func costCases() []bench.Case {
	return []bench.Case{{
		Name: costID, Run: runCost, Takes: takes(4*time.Second, 12*time.Second),
		Claims: []bench.Claim{bench.NewClaim(costID, "processor time of both of the emulator's threads while one TCP connection fills 1 Gbit/s", costCore)},
	}}
}

// runCost leaves slow start out of the account.
func runCost(ctx context.Context, r *bench.Run) error {
	const rtt = 50 * time.Millisecond
	return with(ctx, symmetric(unit.Gbit, rtt), func(l *lab.Lab) error {
		const settle = 2 * time.Second
		length := pick(r.Quick, 2*time.Second, 10*time.Second)
		var before, after cpuTime
		timer := time.AfterFunc(settle, func() { before = emulatorTime(l) })
		defer timer.Stop()
		got, err := flowsAlone(ctx, l, []traffic.Flow{filling(unit.Gbit, rtt)}, traffic.Options{Duration: settle + length, Interval: 250 * time.Millisecond, OnInterval: func([]traffic.FlowInterval) {
			after = emulatorTime(l)
		}})
		if err != nil {
			return err
		}
		used, seconds := after.cpu-before.cpu, (after.at - before.at).Seconds()
		rate := got.Flow("f").Between(settle, settle+length).DeliveredRate()
		sheet := r.Sheet(bench.Ours)
		sheet.Set(costID, 100*used/seconds)
		sheet.Note(costID, "the connection got %s Mbit/s of layer 2", bench.Number(rate/1e6))
		lateness(sheet, l, costID)
		return nil
	})
}

// cpuTime is what the emulator's threads have used, in seconds, at a time.
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
