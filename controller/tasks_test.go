package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/store"
)

// A periodic task runs at once and at each interval, also after an error, until the term ends.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		one := every(time.Hour, "test", func(_ context.Context, _ store.Term, now time.Time) error {
			at = append(at, now.Sub(began))
			return errors.New("test")
		})
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Minute)
		defer cancel()
		one.run(ctx, store.Term{})
		if len(at) != 3 || at[0] != 0 || at[2] != 2*time.Hour {
			t.Errorf("the task ran at %v", at)
		}
	})
}
