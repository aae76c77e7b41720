package service

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// The end of a measured path has all names of its devices, so that the controller finds a document by any of them.
func TestMeasuredByAllNames(t *testing.T) {
	m := &measurements{
		states:   func() []shaper.State { return nil },
		altNames: func() group.AltNames { return group.AltNames{"lo": {"enloop"}, "eth0": {"enp0s3"}} },
	}
	if got := m.endOf("127.0.0.1", 0, 0).GetDevices(); !slices.Equal(got, []string{"lo", "enloop"}) {
		t.Errorf("devices on the path: %q", got)
	}
}

// A new scheduled measurement ends the one before. A requested measurement is not ended, and is not
// waited for long.
func TestTurns(t *testing.T) {
	turns := newTurns()
	first, release, err := turns.acquireScheduled(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-first.Done()
		release()
	}()
	second, release, err := turns.acquireScheduled(t.Context(), "2")
	if err != nil || first.Err() == nil {
		t.Fatalf("the second measurement: %v, the first: %v", err, first.Err())
	}
	turns.stop("1")
	if second.Err() != nil {
		t.Error("stopping an earlier measurement ended the present one")
	}
	release()
	release, err = turns.acquireRequested(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, _, err := turns.acquireScheduled(t.Context(), "3"); err == nil || time.Since(began) < turnTimeout {
		t.Errorf("during a requested measurement: %v after %v", err, time.Since(began))
	}
	release()
	if _, release, err = turns.acquireScheduled(t.Context(), "4"); err != nil {
		t.Error(err)
	}
	release()
	if release, err = turns.acquireRequested(t.Context()); err != nil {
		t.Error(err)
	}
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.acquireRequested(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for the turn after the end of the stream: %v", err)
	}
}
