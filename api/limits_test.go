package api

import (
	"fmt"
	"testing"

	"headgate/store"
)

// Who has asked too often waits, however many others ask meanwhile; these are forgotten.
func TestManyAsk(t *testing.T) {
	var l limits
	greedy := store.Token{ID: "1", Tenant: "greedy"}
	for l.take(greedy, 1) == 0 {
	}
	for i := range 2*mostBuckets + 1 {
		l.take(store.Token{ID: fmt.Sprint("x", i), Tenant: fmt.Sprint(i)}, 1_000_000) // full again in a microsecond
	}
	if l.take(greedy, 1) == 0 {
		t.Error("who has asked too often may ask again")
	}
	if len(l.buckets) > mostBuckets {
		t.Errorf("%d are remembered", len(l.buckets))
	}
}
