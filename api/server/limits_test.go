package server

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/store"
)

// A tenant over its rate limit has to wait however many other tenants send requests; the full buckets of the
// others are removed.
func TestRateLimitWithManyTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l rateLimits
		greedy := store.Token{ID: "1", Tenant: "greedy"}
		for l.take(greedy, 1) == 0 {
		}
		for i := range 2*maxBuckets + 1 {
			l.take(store.Token{ID: fmt.Sprint("x", i), Tenant: fmt.Sprint(i)}, 1_000_000)
			time.Sleep(time.Microsecond) // the bucket is full again
		}
		if l.take(greedy, 1) == 0 {
			t.Error("a tenant over its rate limit is admitted")
		}
		if len(l.buckets) > maxBuckets {
			t.Errorf("%d buckets, want at most %d", len(l.buckets), maxBuckets)
		}
	})
}
