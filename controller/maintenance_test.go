package controller_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/controller"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/etcd"
	"headgate.dev/headgate/store/storetest"
)

// The service rejects changes while the store is full, reports this as its health, and accepts changes
// again by itself.
func TestFull(t *testing.T) {
	t.Parallel()
	ports := storetest.Ports(t, 2)
	m := storetest.Run(t, etcd.Member{Name: "c1", Peers: map[string]string{"c1": "127.0.0.1"}, Dir: t.TempDir(), ClientPort: ports[0], PeerPort: ports[1], Quota: 16 << 20})
	db := storetest.Open(t, m)
	s := startOn(t, db, controller.Config{Name: "c1", API: "127.0.0.1:0", Agents: "127.0.0.1:0", Version: "test"}, func() {})
	s.must(200, "PUT", "/v1/tenants/a", `{}`)
	key, large := store.Key(store.IdempotentAnswers, "x", "y"), string(bytes.Repeat([]byte("x"), 200_000))
	for {
		if _, err := db.Do(t.Context(), key, func(tx *store.Tx) error { return tx.Put(key, large) }); errors.Is(err, store.ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	within := func(what string, so func() bool) {
		t.Helper()
		for deadline := time.Now().Add(40 * time.Second); !so(); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("not within 40 s: " + what)
			}
		}
	}
	writable := func(is bool) func() bool {
		return func() bool {
			return strings.Contains(s.must(200, "GET", "/v1/health", "").text, fmt.Sprintf(`"writable":%v`, is))
		}
	}
	within("the health says not writable", writable(false))
	if r := s.do(s.operator, "PUT", "/v1/tenants/b", `{}`); r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("the answer to a change is %+v", r)
	}
	within("the health says writable again", writable(true))
	s.must(200, "PUT", "/v1/tenants/b", `{}`)
	s.must(200, "GET", "/v1/tenants/a", "")
}
