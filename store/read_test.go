package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

// All reads more than one etcd message holds in several pages, at one revision.
func TestAll(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Start(t))
	huge := string(bytes.Repeat([]byte("x"), 7<<20))
	const n = 10 // 70 MiB
	for i := range n {
		key := store.Key(store.Tenants, fmt.Sprintf("%02d", i))
		if _, err := s.Do(t.Context(), key, func(tx *store.Tx) error { return tx.Put(key, huge) }); err != nil {
			t.Fatal(err)
		}
	}
	docs, at, err := s.All(t.Context(), store.Prefix(store.Tenants), 0)
	if err != nil || len(docs) != n || docs[n-1].Key != store.Key(store.Tenants, "09") {
		t.Fatalf("%d documents at revision %d: %v", len(docs), at, err)
	}
	put(t, s, "10")
	if then, _, err := s.All(t.Context(), store.Prefix(store.Tenants), at); err != nil || len(then) != n {
		t.Errorf("%d documents at the earlier revision: %v", len(then), err)
	}
	page, more, _, err := s.List(t.Context(), store.Prefix(store.Tenants), "", 1000)
	if err != nil || !more || len(page) == 0 {
		t.Errorf("a page has %d documents: %v", len(page), err)
	}
}

// A transaction that has read thousands of documents is retried if one of them has changed or one was
// added, and sees its own writes.
func TestTxAll(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Start(t))
	const n = 2000
	for i := range n / 1000 {
		if _, err := s.Do(t.Context(), "x", func(tx *store.Tx) error {
			for j := range 1000 {
				if err := tx.Put(store.Key(store.Tenants, fmt.Sprintf("%04d", 1000*i+j)), 1); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for what, between := range map[string]func(){
		"changed": func() { put(t, s, "0000") },
		"added":   func() { put(t, s, "added") },
	} {
		calls := 0
		if _, err := s.Do(t.Context(), "y", func(tx *store.Tx) error {
			docs, err := tx.All(store.Prefix(store.Tenants))
			if err != nil || len(docs) < n {
				return errors.Join(err, fmt.Errorf("%d documents", len(docs)))
			}
			if calls++; calls == 1 {
				between()
			}
			tx.Delete(store.Key(store.Tenants, "0001"))
			if err := tx.Put(store.Key(store.Tenants, "0001a"), 1); err != nil {
				return err
			}
			then, err := tx.All(store.Prefix(store.Tenants))
			if err == nil && (then[1].Key != store.Key(store.Tenants, "0001a") || len(then) < n) {
				err = fmt.Errorf("%d documents with %s", len(then), then[1].Key)
			}
			return err
		}); err != nil || calls != 2 {
			t.Errorf("%s: %d calls, %v", what, calls, err)
		}
	}
}
