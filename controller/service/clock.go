package service

import (
	"context"
	"log/slog"
	"time"
)

// clockCheck is how often a jump of the clock is looked for, and leastJump the least that counts as one: time servers correct less without a jump.
const clockCheck, leastJump = 2 * time.Second, 30 * time.Second

// watchClock calls jumped after each jump of the clock until ctx ends: it was set, or the machine was suspended.
func watchClock(ctx context.Context, jumped func()) {
	tick := time.NewTicker(clockCheck)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if by := jump(last, now); by.Abs() >= leastJump {
			slog.Warn("the clock of this machine jumped", "by", by.Round(time.Second))
			jumped()
		}
		last = now
	}
}

// jump is by how much the clock went further between two readings than time did, which the monotonic clock counts.
func jump(before, after time.Time) time.Duration {
	return after.Round(0).Sub(before.Round(0)) - after.Sub(before)
}
