// Package sleep waits for points in time.
package sleep

import (
	"context"
	"time"
)

// Until waits until a time. It returns false if ctx ended first.
func Until(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
