package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Main()
	os.Exit(m.Run())
}

// ledger is a document of these tests: how much of a size is guaranteed.
type ledger struct {
	Size, Promised int
}

var errFull = errors.New("the ledger is full")

func promise(key string, n int) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		var l ledger
		if _, ok, err := tx.Get(key, &l); err != nil || !ok {
			return errors.Join(err, errors.New("the ledger does not exist"))
		}
		if l.Promised+n > l.Size {
			return errFull
		}
		l.Promised += n
		return tx.Put(key, l)
	}
}

// Of hundreds of concurrent requests through two clients, exactly as many succeed as fit.
func TestDo(t *testing.T) {
	t.Parallel()
	m := storetest.Start(t)
	stores := []*store.Store{storetest.Open(t, m), storetest.Open(t, m)}
	key := store.Key(store.Interfaces, "h1", "eth0")
	const size, asking = 300, 400
	if _, err := stores[0].Do(t.Context(), key, func(tx *store.Tx) error { return tx.Put(key, ledger{Size: size}) }); err != nil {
		t.Fatal(err)
	}
	var promised, refused atomic.Int32
	var all sync.WaitGroup
	for i := range asking {
		all.Go(func() {
			switch _, err := stores[i%2].Do(t.Context(), key, promise(key, 1)); {
			case err == nil:
				promised.Add(1)
			case errors.Is(err, errFull):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	var l ledger
	d, ok, err := stores[1].Get(t.Context(), key, 0)
	if err != nil || !ok || d.Into(&l) != nil || l.Promised != size || promised.Load() != size || refused.Load() != asking-size {
		t.Errorf("%+v, %d accepted, %d rejected: %v", l, promised.Load(), refused.Load(), err)
	}
}

// An error or a panic of one request affects that request only, and discards its writes.
func TestRefusal(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Start(t))
	key := store.Key(store.Tenants, "a")
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			_, err := s.Do(t.Context(), "one", func(tx *store.Tx) error {
				if err := tx.Put(fmt.Sprint(key, i), i); err != nil {
					return err
				}
				switch i % 3 {
				case 0:
					return errFull
				case 1:
					panic("a bug")
				}
				return nil
			})
			if (err == nil) != (i%3 == 2) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
	docs, _, _, err := s.List(t.Context(), key, "", 100)
	if len(docs) != 10 || err != nil {
		t.Errorf("%d documents, want 10 (%v)", len(docs), err)
	}
}

// Watch delivers every change once and in order, and can continue from a revision.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Start(t))
	write := func(n int) int64 {
		t.Helper()
		key := store.Key(store.Tenants, fmt.Sprint(n))
		revision, err := s.Do(t.Context(), key, func(tx *store.Tx) error { return tx.Put(key, n) })
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	first := write(1)
	for n := 2; n <= 5; n++ {
		write(n)
	}
	follow := func(after int64, most int) (seen []int, last int64) {
		t.Helper()
		enough := errors.New("enough")
		err := s.Watch(t.Context(), store.Prefix(store.Tenants), after, func(revision int64, events []store.Event) error {
			for _, e := range events {
				var n int
				if err := e.Into(&n); err != nil {
					return err
				}
				seen, last = append(seen, n), revision
			}
			if len(seen) == most {
				return enough
			}
			return nil
		}, func(int64) error { return nil })
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
		return seen, last
	}
	if seen, last := follow(first, 2); fmt.Sprint(seen) != "[2 3]" {
		t.Errorf("first watch: %v", seen)
	} else if seen, _ := follow(last, 2); fmt.Sprint(seen) != "[4 5]" {
		t.Errorf("second watch: %v", seen)
	}
}

// There is one leader. When it ends, it has resigned, and a second one takes over. The first one then changes nothing.
func TestLead(t *testing.T) {
	t.Parallel()
	m := storetest.Start(t)
	a, b := storetest.Open(t, m), storetest.Open(t, m)
	terms := make(chan store.Term, 2)
	lead := func(s *store.Store, name string) (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Lead(ctx, store.Candidate{Name: name}, func(ctx context.Context, t store.Term) error {
				terms <- t
				<-ctx.Done()
				return nil
			})
		}()
		return func() { cancel(); <-done }
	}
	endA := lead(a, "a")
	first := <-terms
	endB := lead(b, "b")
	defer endB()
	key := store.Key(store.Tenants, "x")
	put := func(tx *store.Tx) error { return tx.Put(key, 1) }
	if _, err := first.Do(t.Context(), key, put); err != nil {
		t.Error(err)
	}
	if name, err := b.Leader(t.Context()); name != "a" || err != nil {
		t.Errorf("the leader is %q, %v", name, err)
	}
	waits := func() bool {
		docs, _, err := b.All(t.Context(), store.Prefix(store.Service, "leader"), 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(docs) == 2
	}
	for !waits() {
		time.Sleep(10 * time.Millisecond)
	}
	endA()
	if name, err := b.Leader(t.Context()); name != "b" || err != nil {
		t.Errorf("when the first leader has ended, the leader is %q, %v", name, err)
	}
	second := <-terms
	if _, err := first.Do(t.Context(), key, put); !errors.Is(err, store.ErrNotLeader) {
		t.Errorf("a change by the former leader: %v", err)
	}
	if _, err := second.Do(t.Context(), key, put); err != nil {
		t.Error(err)
	}
}

// An acknowledged change survives a stop of the store.
func TestStopped(t *testing.T) {
	t.Parallel()
	m := storetest.Start(t)
	s := storetest.Open(t, m)
	key := store.Key(store.Tenants, "kept")
	if _, err := s.Do(t.Context(), key, func(tx *store.Tx) error { return tx.Put(key, "kept") }); err != nil {
		t.Fatal(err)
	}
	m.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	// It may be made nevertheless, when the store runs again.
	if _, err := s.Do(ctx, key, func(tx *store.Tx) error { return tx.Put(store.Key(store.Tenants, "unknown"), "unknown") }); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("without a store: %v", err)
	}
	again := storetest.Open(t, storetest.Run(t, m.Member))
	var was string
	d, ok, err := again.Get(t.Context(), key, 0)
	if err != nil || !ok || d.Into(&was) != nil || was != "kept" {
		t.Errorf("read %q, %v, %v", was, ok, err)
	}
}

// A member that is killed with -9 in the middle of changes, and started again, has every change that it
// acknowledged.
func TestKilled(t *testing.T) {
	t.Parallel()
	m := storetest.Start(t)
	s := storetest.Open(t, m)
	var made []string
	change := func(n int) bool {
		key := store.Key(store.Tenants, fmt.Sprintf("t%05d", n))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := s.Do(ctx, key, func(tx *store.Tx) error { return tx.Put(key, "kept") })
		switch {
		case err == nil:
			made = append(made, key)
		case !errors.Is(err, store.ErrUnavailable):
			t.Errorf("change %d: %v", n, err)
		}
		return err == nil
	}
	n := 0
	for range 3 {
		killed := make(chan struct{})
		go func() {
			time.Sleep(50 * time.Millisecond)
			m.Kill(t)
			close(killed)
		}()
		for running := true; running; n++ {
			change(n)
			select {
			case <-killed:
				running = false
			default:
			}
		}
		for !change(n) { // until the process runs again
			n++
		}
		n++
	}
	for _, key := range made {
		if _, ok, err := s.Get(t.Context(), key, 0); err != nil || !ok {
			t.Errorf("%s, which was acknowledged: read %v, %v", key, ok, err)
		}
	}
	if len(made) < 10 {
		t.Errorf("only %d changes were acknowledged", len(made))
	}
}

// A tenant that sends many slow requests does not delay that of another one: a transaction takes some of them, and tenants take turns.
func TestDoInTurns(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Start(t))
	key := store.Key(store.Interfaces, "h1", "eth0")
	slow := func(tx *store.Tx) error {
		time.Sleep(10 * time.Millisecond)
		return tx.Put(key, ledger{})
	}
	const many = 200 // 2 s of work
	var left atomic.Int32
	left.Store(many)
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			defer left.Add(-1)
			if _, err := s.Do(store.ForTenant(t.Context(), "noisy"), key, slow); err != nil {
				t.Error(err)
			}
		})
	}
	for left.Load() == many {
		time.Sleep(time.Millisecond)
	}
	if _, err := s.Do(store.ForTenant(t.Context(), "other"), key, slow); err != nil {
		t.Error(err)
	}
	if left.Load() < many/2 {
		t.Errorf("the request of another tenant waited until %d of %d were left", left.Load(), many)
	}
	all.Wait()
}

// A document has a bound.
func TestMaxDocument(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Start(t))
	var large *store.DocumentTooLarge
	_, err := s.Do(t.Context(), "x", func(tx *store.Tx) error {
		return tx.Put(store.Key(store.Interfaces, "h1", "eth0"), strings.Repeat("x", store.MaxDocument))
	})
	if !errors.As(err, &large) || large.Size != store.MaxDocument+2 {
		t.Errorf("a document above the bound: %v", err)
	}
}
