package bench

import (
	"context"
	"time"
)

// Sleep waits for a time. It returns the error of ctx if that ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
