package store_test

import (
	"context"
	"testing"
	"time"

	"headgate/store"
	"headgate/store/storetest"
)

// Who reads several times asks most of the members once, and then the one that is spoken to; what it is
// told is as new as when it began, whoever wrote it, and however long it goes on.
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
		once = store.Once(t.Context())
		for range 3 {
			if got, err := get(once); got != v || err != nil {
				t.Fatalf("%q was written, and %q is read: %v", v, got, err)
			}
		}
		// Also in a transaction, which another's change is not kept from.
		if _, err := c2.Do(t.Context(), key, func(tx *store.Tx) error {
			var got string
			if _, _, err := tx.Get(key, &got); err != nil {
				return err
			}
			return tx.Put(key, got+"!")
		}); err != nil {
			t.Fatal(err)
		}
		if got, err := get(store.Once(t.Context())); got != v+"!" || err != nil {
			t.Fatalf("%q! was written, and %q is read: %v", v, got, err)
		}
	}
	runs["c1"].Stop()
	var began time.Time
	for deadline := time.Now().Add(20 * time.Second); ; {
		once, began = store.Once(t.Context()), time.Now()
		if _, err := get(once); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	runs["c3"].Stop()
	took := time.Since(began)
	if got, err := get(once); took < 500*time.Millisecond && (err != nil || got != "5!") {
		t.Errorf("%v after it asked, while most are away, it reads %q: %v", took, got, err)
	}
	if got, err := get(store.Once(t.Context())); err == nil {
		t.Errorf("who begins while most are away is told %q", got)
	}
}
