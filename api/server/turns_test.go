package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Requests of a tenant wait for each other, and not for those of others or of operators.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all turns
		began := time.Now()
		end, err := all.take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{"b", "", ""} {
			if end, err := all.take(t.Context(), other); err != nil {
				t.Error(err)
			} else if other == "" {
				end()
			}
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("others waited for %v", waited)
		}
		time.AfterFunc(time.Minute, end)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := all.take(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second turn: %v", err)
		}
		if end, err = all.take(t.Context(), "a"); err != nil || time.Since(began) != time.Minute {
			t.Errorf("the next turn is after %v, %v", time.Since(began), err)
		}
		end()
	})
}
