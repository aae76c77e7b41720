package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/etcd"
	"headgate.dev/headgate/store/storetest"
)

// small runs a store with a quota of 16 MiB.
func small(t *testing.T) *storetest.Member {
	t.Helper()
	ports := storetest.Ports(t, 2)
	return storetest.Run(t, etcd.Member{Name: "c1", Peers: map[string]string{"c1": "127.0.0.1"}, Dir: t.TempDir(), ClientPort: ports[0], PeerPort: ports[1], Quota: 16 << 20})
}

// large is a document of 200 kB.
var large = string(bytes.Repeat([]byte("x"), 200_000))

func write(ctx context.Context, s *store.Store, name string) (int64, error) {
	key := store.Key(store.Tenants, name)
	return s.Do(ctx, key, func(tx *store.Tx) error { return tx.Put(key, large) })
}

// Maintain compacts a store that its history has filled, and the store accepts changes again. An
// external etcd is left alone. A store with regular calls of Maintain never becomes full.
func TestTend(t *testing.T) {
	t.Parallel()
	m := small(t)
	s := storetest.Open(t, m)
	tls, err := m.TLS()
	if err != nil {
		t.Fatal(err)
	}
	others := open(t, store.Endpoint{URLs: m.URLs(), TLS: tls, External: true})
	put(t, s, "kept")
	first, err := write(t.Context(), s, "a")
	for n := 0; err == nil; n++ {
		if _, err = write(t.Context(), s, "a"); n > 200 {
			t.Fatal("the store does not become full")
		}
	}
	if !errors.Is(err, store.ErrFull) {
		t.Fatal(err)
	}
	full := func(s *store.Store) bool {
		t.Helper()
		r, err := s.Space(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Full && r.Writable() {
			t.Error("the store is full and writable")
		}
		return r.Full
	}
	if err := others.Maintain(t.Context()); err != nil || !full(others) || !full(s) {
		t.Errorf("Maintain acts on an external etcd: %v", err)
	}
	for n := 0; full(s); n++ {
		if err := s.Maintain(t.Context()); err != nil || n > 10 {
			t.Fatalf("the store stays full: %v", err)
		}
	}
	if r, err := s.Space(t.Context()); err != nil || !r.Writable() || r.Size > r.Quota/4*3 {
		t.Errorf("after Maintain: %+v, %v", r, err)
	}
	if !has(t, s, "kept") || !has(t, s, "a") {
		t.Error("a current document is missing")
	}
	if _, _, err := s.Get(t.Context(), store.Key(store.Tenants, "a"), first); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("reading the oldest revision: %v", err)
	}
	for n := range 150 {
		if _, err := write(t.Context(), s, "a"); err != nil {
			t.Fatalf("after %d changes: %v", n, err)
		}
		if n%10 == 0 {
			// etcd reports its size as of its last commit, which it makes every 100 ms.
			time.Sleep(150 * time.Millisecond)
			if err := s.Maintain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Maintain maintains all of three members, from whichever client is connected to the etcd leader.
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
			t.Fatal("the store does not become full")
		}
	}
	if !errors.Is(err, store.ErrFull) {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		writable := 0
		for _, s := range stores {
			if err := s.Maintain(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Space(t.Context()); err == nil && r.Writable() && r.Size < r.Quota/4*3 {
				writable++
			}
		}
		if writable == len(stores) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of 3 members are writable", writable)
		}
	}
	if _, err := write(t.Context(), stores[1], "a"); err != nil {
		t.Error(err)
	}
}

// Maintain deletes the oldest entries of an audit log that takes too much of the quota.
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
	// etcd reports its size as of its last commit to disk, which it makes every 100 ms.
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		r, err := s.Space(t.Context())
		if err != nil || time.Now().After(end) {
			t.Fatalf("the store has %d of %d bytes in use, %v", r.InUse, r.Quota, err)
		}
		if r.InUse > r.Quota/2 {
			break
		}
	}
	if err := s.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	docs, _, err := s.All(t.Context(), store.Prefix(store.Audit), 0)
	if err != nil || len(docs) != most || docs[most-1].Key != store.Key(store.Audit, fmt.Sprintf("%06d", entries-1)) {
		t.Errorf("%d audit entries remain, want %d: %v", len(docs), most, err)
	}
	if docs, _, err := s.All(t.Context(), store.Prefix(store.Tenants), 0); err != nil || len(docs) != 40 {
		t.Errorf("%d tenants remain, want 40: %v", len(docs), err)
	}
}
