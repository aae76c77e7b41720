package store_test

import (
	"fmt"
	"testing"
	"time"

	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

// WatchComplete keeps reporting that the watch is complete, and stops when the store is disconnected.
func TestFollow(t *testing.T) {
	t.Parallel()
	m := storetest.Start(t)
	s := storetest.Open(t, m)
	first := put(t, s, "a")
	asOf := make(chan time.Time, 1000)
	go s.WatchComplete(t.Context(), first, func(int64, []store.Event) error { return nil }, func(_ int64, at time.Time) { asOf <- at })
	late := func() bool {
		t.Helper()
		for deadline := time.After(3 * time.Second); ; {
			select {
			case at := <-asOf:
				if time.Since(at) < time.Second {
					return false
				}
			case <-deadline:
				return true
			}
		}
	}
	for n := range 4 {
		if late() {
			t.Fatal("no completeness report within 3 s")
		}
		put(t, s, fmt.Sprint("b", n))
	}
	m.Stop()
	time.Sleep(time.Second)
	if !late() {
		t.Error("completeness reports continue without a store")
	}
}
