package pending

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/shaper"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "made/when/needed"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Store) mustWrite(t *testing.T, within time.Duration, devices ...string) Change {
	t.Helper()
	var snapshots []Snapshot
	for _, d := range devices {
		snapshots = append(snapshots, Snapshot{Dev: d, Engine: "htb", Plan: &shaper.Plan{Dev: d}})
	}
	c := s.New(within, snapshots)
	if err := s.Write(c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *Store) mustRead(t *testing.T) (Change, Stage) {
	t.Helper()
	c, stage, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	return c, stage
}

// Many holders of the lock exclude each other, and leave no file.
func TestLockIsRemoved(t *testing.T) {
	s := newStore(t)
	var held atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 100 {
				unlock, err := s.Lock()
				if err != nil {
					t.Error(err)
					return
				}
				if held.Add(1) != 1 {
					t.Error("two processes hold the lock")
				}
				held.Add(-1)
				unlock()
			}
		})
	}
	all.Wait()
	release, err := s.markWaiter()
	if err != nil {
		t.Fatal(err)
	}
	release()
	if left, err := os.ReadDir(filepath.Dir(s.base)); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func nothing(Snapshot) error { return nil }

func TestStages(t *testing.T) {
	s := newStore(t)
	if _, stage := s.mustRead(t); stage != None {
		t.Errorf("new store: stage %d", stage)
	}
	c := s.mustWrite(t, time.Hour, "eth0", "eth1")
	if got := s.Devices(); got != nil {
		t.Errorf("without a waiter: devices %q await confirmation", got)
	}
	if got, stage := s.mustRead(t); stage != Abandoned || got.ID != c.ID || got.Names() != "eth0, eth1" || got.Devices[1].Plan.Dev != "eth1" {
		t.Errorf("without a waiter: stage %d, %+v", stage, got)
	}
	release, err := s.markWaiter()
	if err != nil {
		t.Fatal(err)
	}
	if _, stage := s.mustRead(t); stage != Waiting {
		t.Errorf("with a waiter: stage %d", stage)
	}
	if got := s.Devices(); !slices.Equal(got, []string{"eth0", "eth1"}) {
		t.Errorf("with a waiter: devices %q await confirmation", got)
	}
	if _, err := s.markWaiter(); err == nil {
		t.Error("two processes wait at the same time")
	}
	if ok, err := s.claim(c.ID); !ok || err != nil {
		t.Fatalf("claim: %v, %v", ok, err)
	}
	if _, stage := s.mustRead(t); stage != RollingBack {
		t.Errorf("while rolling back: stage %d", stage)
	}
	release()
	if _, stage := s.mustRead(t); stage != Unfinished {
		t.Errorf("after an interrupted rollback: stage %d", stage)
	}
	if ok, err := s.Confirm(); ok || err != nil {
		t.Errorf("confirmed while rolling back: %v, %v", ok, err)
	}
	var undone []string
	if err := s.RollBack(c, func(d Snapshot) error { undone = append(undone, d.Dev); return nil }); err != nil || len(undone) != 2 {
		t.Errorf("finishing the rollback: %v, %v", undone, err)
	}
	if _, stage := s.mustRead(t); stage != None {
		t.Errorf("after the rollback: stage %d", stage)
	}
}

// TestConfirmOrRollBack: of concurrent confirmations and rollbacks, exactly one succeeds.
func TestConfirmOrRollBack(t *testing.T) {
	s := newStore(t)
	for range 200 {
		c := s.mustWrite(t, time.Hour, "eth0")
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				take := s.Confirm
				if i%2 == 0 {
					take = func() (bool, error) { return s.claim(c.ID) }
				}
				ok, err := take()
				if err != nil {
					t.Error(err)
				}
				if ok {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d calls succeeded, want 1", won.Load())
		}
		if err := s.Forget(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClaimIsForOneChange(t *testing.T) {
	s := newStore(t)
	old := s.mustWrite(t, time.Hour, "eth0")
	s.mustWrite(t, time.Hour, "eth0")
	if ok, err := s.claim(old.ID); ok || err != nil {
		t.Errorf("a change that is not pending any more was claimed: %v, %v", ok, err)
	}
	if err := s.RollBack(old, nothing); err == nil {
		t.Error("a change that is not pending any more was rolled back without an error")
	}
}

func TestDrop(t *testing.T) {
	s := newStore(t)
	if err := s.Drop("eth0"); err != nil {
		t.Errorf("Drop without a pending change: %v", err)
	}
	s.mustWrite(t, time.Hour, "eth0", "eth1")
	for _, dev := range []string{"eth9", "eth0"} {
		if err := s.Drop(dev); err != nil {
			t.Fatal(err)
		}
	}
	if c, _ := s.mustRead(t); c.Names() != "eth1" {
		t.Errorf("devices left: %s, want eth1", c.Names())
	}
	if err := s.Drop("eth1"); err != nil {
		t.Fatal(err)
	}
	if _, stage := s.mustRead(t); stage != None {
		t.Errorf("stage %d after dropping all devices", stage)
	}
}

func TestWait(t *testing.T) {
	for _, c := range []struct {
		name   string
		within time.Duration
		then   func(s *Store, stop func()) error
		undone bool
	}{
		{"deadline", 10 * time.Millisecond, func(*Store, func()) error { return nil }, true},
		{"deadline passed before", -time.Hour, func(*Store, func()) error { return nil }, true},
		{"confirmed", time.Hour, func(s *Store, _ func()) error { _, err := s.Confirm(); return err }, false},
		{"context cancelled", time.Hour, func(_ *Store, stop func()) error { stop(); return nil }, true},
		{"device dropped", 300 * time.Millisecond, func(s *Store, _ func()) error { return s.Drop("eth0") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			change := s.mustWrite(t, c.within, "eth0")
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			undone := false
			err := s.Wait(ctx, change.ID, func() {
				if err := c.then(s, stop); err != nil {
					t.Error(err)
				}
			}, func(Snapshot) error { undone = true; return nil })
			if err != nil || undone != c.undone {
				t.Errorf("undone: %v, want %v (error %v)", undone, c.undone, err)
			}
			if _, stage := s.mustRead(t); stage != None {
				t.Errorf("stage %d after Wait", stage)
			}
		})
	}
}

func TestWaitTriesAgain(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	c := s.mustWrite(t, 0, "eth0", "eth1")
	calls := 0
	err := s.Wait(context.Background(), c.ID, func() {}, func(d Snapshot) error {
		calls++
		if calls <= 2 {
			return errors.New("busy")
		}
		return nil
	})
	if err != nil || calls != 4 {
		t.Errorf("%d calls, %v; want 4 (two devices, twice)", calls, err)
	}
}

// TestWriteLeavesNoRest: Write replaces the file, and leaves no other file in the
// directory.
func TestWriteLeavesNoRest(t *testing.T) {
	s := newStore(t)
	for range 3 {
		s.mustWrite(t, time.Hour, "eth0")
	}
	entries, err := os.ReadDir(filepath.Dir(s.base))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestDamagedFile(t *testing.T) {
	s := newStore(t)
	s.mustWrite(t, time.Hour, "eth0")
	if err := os.WriteFile(s.waitingFile(), []byte("{\"id\": 3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Read(); err == nil {
		t.Error("a corrupt file was read without an error")
	}
}
