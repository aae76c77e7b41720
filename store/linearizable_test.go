package store_test

import (
	"context"
	"testing"
	"time"

	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

// Under a ReadOnceContext the first read asks a quorum, and later reads ask only the connected member. They
// return nothing older than the call of ReadOnceContext, whichever client wrote it.
func TestOnce(t *testing.T) {
	t.Parallel()
	_, runs := three(t, 0)
	c1, c2 := storetest.Open(t, runs["c1"]), storetest.Open(t, runs["c2"])
	key := store.Key(store.Tenants, "a")
	get := func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		d, ok, err := c2.Get(ctx, key, 0)
		var v string
		if err == nil && ok {
			err = d.Into(&v)
		}
		return v, err
	}
	var once context.Context
	for _, v := range []string{"1", "2", "3", "4", "5"} {
		if _, err := c1.Do(t.Context(), key, func(tx *store.Tx) error { return tx.Put(key, v) }); err != nil {
			t.Fatal(err)
		}
		once = store.ReadOnceContext(t.Context())
		for range 3 {
			if got, err := get(once); got != v || err != nil {
				t.Fatalf("want %q, read %q: %v", v, got, err)
			}
		}
		// The same holds in a transaction, which sees the change of the other client.
		if _, err := c2.Do(t.Context(), key, func(tx *store.Tx) error {
			var got string
			if _, _, err := tx.Get(key, &got); err != nil {
				return err
			}
			return tx.Put(key, got+"!")
		}); err != nil {
			t.Fatal(err)
		}
		if got, err := get(store.ReadOnceContext(t.Context())); got != v+"!" || err != nil {
			t.Fatalf("want %q!, read %q: %v", v, got, err)
		}
	}
	runs["c1"].Stop()
	var began time.Time
	for deadline := time.Now().Add(20 * time.Second); ; {
		once, began = store.ReadOnceContext(t.Context()), time.Now()
		if _, err := get(once); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	runs["c3"].Stop()
	took := time.Since(began)
	if got, err := get(once); took < 500*time.Millisecond && (err != nil || got != "5!") {
		t.Errorf("%v after the first read, without a quorum: read %q: %v", took, got, err)
	}
	if got, err := get(store.ReadOnceContext(t.Context())); err == nil {
		t.Errorf("a new ReadOnceContext without a quorum reads %q", got)
	}
}
