package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"headgate/store"
	"headgate/store/etcd"
	"headgate/store/storetest"
)

// small runs a store that keeps 16 MiB.
func small(t *testing.T) *storetest.Member {
	t.Helper()
	ports := storetest.Ports(t, 2)
	return storetest.Run(t, etcd.Member{Name: "c1", Peers: map[string]string{"c1": "127.0.0.1"}, Dir: t.TempDir(), ClientPort: ports[0], PeerPort: ports[1], Quota: 16 << 20})
}

// large is a document of 200 KB.
var large = string(bytes.Repeat([]byte("x"), 200_000))

func write(ctx context.Context, s *store.Store, name string) (int64, error) {
	key := store.Key(store.Tenants, name)
	return s.Do(ctx, key, func(tx *store.Tx) error { return tx.Put(key, large) })
}

// A store whose history has filled it forgets some of it and takes changes again; one that is somebody
// else's is left alone. One that is looked after is never full, however much is changed.
func TestTend(t *testing.T) {
	t.Parallel()
	m := small(t)
	s := storetest.Open(t, m)
	tls, err := m.TLS()
	if err != nil {
		t.Fatal(err)
	}
	others := open(t, store.Endpoint{URLs: m.URLs(), TLS: tls, Foreign: true})
	put(t, s, "kept")
	first, err := write(t.Context(), s, "a")
	for n := 0; err == nil; n++ {
		if _, err = write(t.Context(), s, "a"); n > 200 {
			t.Fatal("it is never full")
		}
	}
	if !errors.Is(err, store.ErrFull) {
		t.Fatal(err)
	}
	full := func(s *store.Store) bool {
		t.Helper()
		r, err := s.Room(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Full && r.Writable() {
			t.Error("it is full and writable")
		}
		return r.Full
	}
	if err := others.Tend(t.Context()); err != nil || !full(others) || !full(s) {
		t.Errorf("another's is looked after: %v", err)
	}
	for n := 0; full(s); n++ {
		if err := s.Tend(t.Context()); err != nil || n > 10 {
			t.Fatalf("it stays full: %v", err)
		}
	}
	if r, err := s.Room(t.Context()); err != nil || !r.Writable() || r.Size > r.Quota/4*3 {
		t.Errorf("then it has %+v, %v", r, err)
	}
	if !has(t, s, "kept") || !has(t, s, "a") {
		t.Error("what was wanted is forgotten")
	}
	if _, _, err := s.Get(t.Context(), store.Key(store.Tenants, "a"), first); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("the oldest history: %v", err)
	}
	for n := range 300 {
		if _, err := write(t.Context(), s, "a"); err != nil {
			t.Fatalf("after %d changes: %v", n, err)
		}
		if n%10 == 0 {
			if err := s.Tend(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Of three members all are looked after, by whichever speaks to the one that leads.
func TestTendThree(t *testing.T) {
	t.Parallel()
	members, runs := three(t, 16<<20)
	var stores []*store.Store
	for name, m := range members {
		tls, err := m.TLS()
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, open(t, store.Endpoint{URLs: []string{runs[name].URL()}, TLS: tls}))
	}
	var err error
	for n := 0; err == nil; n++ {
		if _, err = write(t.Context(), stores[0], "a"); n > 200 {
			t.Fatal("it is never full")
		}
	}
	if !errors.Is(err, store.ErrFull) {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		writable := 0
		for _, s := range stores {
			if err := s.Tend(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Room(t.Context()); err == nil && r.Writable() && r.Size < r.Quota/4*3 {
				writable++
			}
		}
		if writable == len(stores) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of them are writable", writable)
		}
	}
	if _, err := write(t.Context(), stores[1], "a"); err != nil {
		t.Error(err)
	}
}

// Of an audit log that takes too much room the oldest entries are taken away.
func TestTendAudit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, small(t))
	for n := range 40 {
		if _, err := write(t.Context(), s, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	const entries, most = 10_000, 16 << 20 / 4 / 512
	for n := range entries / 1000 {
		if _, err := s.Do(t.Context(), "audit", func(tx *store.Tx) error {
			for i := range 1000 {
				if err := tx.Put(store.Key(store.Audit, fmt.Sprintf("%06d", 1000*n+i)), "an entry"); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Tend(t.Context()); err != nil {
		t.Fatal(err)
	}
	docs, _, err := s.All(t.Context(), store.Prefix(store.Audit), 0)
	if err != nil || len(docs) != most || docs[most-1].Key != store.Key(store.Audit, fmt.Sprintf("%06d", entries-1)) {
		t.Errorf("%d entries are left, want %d: %v", len(docs), most, err)
	}
	if docs, _, err := s.All(t.Context(), store.Prefix(store.Tenants), 0); err != nil || len(docs) != 40 {
		t.Errorf("%d others are left: %v", len(docs), err)
	}
}
