package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

// foreign runs an external etcd: with etcd's default limits, without TLS, on loopback.
func foreign(t *testing.T) string {
	t.Helper()
	ports := storetest.Ports(t, 2)
	at := func(port int) []url.URL {
		return []url.URL{{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}}
	}
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.Logger, c.LogOutputs = t.TempDir(), "fatal", "zap", []string{"stderr"}
	c.ListenClientUrls, c.AdvertiseClientUrls = at(ports[0]), at(ports[0])
	c.ListenPeerUrls, c.AdvertisePeerUrls = at(ports[1]), at(ports[1])
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return at(ports[0])[0].String()
}

func open(t *testing.T, at store.Endpoint) *store.Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := store.Open(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Two services in one etcd with other users do not see each other's documents, changes, leaders and
// epochs. They do not compact its history.
func TestForeign(t *testing.T) {
	t.Parallel()
	at := foreign(t)
	a := open(t, store.Endpoint{URLs: []string{at}, Prefix: "/a", External: true})
	b := open(t, store.Endpoint{URLs: []string{at}, Prefix: "/b", External: true})
	first := put(t, a, "shop")
	put(t, b, "bank")
	if !has(t, a, "shop") || has(t, a, "bank") || !has(t, b, "bank") || has(t, b, "shop") {
		t.Error("a service has the documents of the other one")
	}
	docs, _, _, err := a.List(t.Context(), store.Root, "", 0)
	if err != nil || len(docs) != 1 || docs[0].Key != store.Key(store.Tenants, "shop") {
		t.Errorf("List returns %v, %v", docs, err)
	}
	if err := b.Restored(t.Context(), "once", false); err != nil {
		t.Fatal(err)
	}
	if p, err := a.Position(t.Context()); err != nil || p.Epoch != 0 {
		t.Errorf("a restore of the other service changes the position to %+v, %v", p, err)
	}

	done := errors.New("seen")
	put(t, a, "later")
	audit := store.Key(store.Audit, fmt.Sprintf("%016x-1", time.Now().Add(-time.Hour).UnixNano()))
	if _, err := a.Do(t.Context(), audit, func(tx *store.Tx) error { return tx.Put(audit, "a change") }); err != nil {
		t.Fatal(err)
	}
	err = a.Watch(t.Context(), store.Root, first, func(_ int64, events []store.Event) error {
		if len(events) != 1 || events[0].Key != store.Key(store.Tenants, "later") {
			t.Errorf("Watch delivers %+v", events)
		}
		return done
	}, func(int64) error { return nil })
	if !errors.Is(err, done) {
		t.Error(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var lead sync.WaitGroup
	leads := make(chan error, 2)
	for _, s := range []*store.Store{a, b} {
		lead.Go(func() {
			s.Lead(ctx, store.Candidate{Name: "c1"}, func(ctx context.Context, term store.Term) error {
				_, err := term.Do(ctx, "x", func(tx *store.Tx) error { return nil })
				leads <- errors.Join(err, term.Compact(ctx, time.Now()))
				<-ctx.Done()
				return nil
			})
		})
	}
	for range 2 {
		select {
		case err := <-leads:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("one of the two services has no leader")
		}
	}
	cancel()
	lead.Wait()
	if _, ok, err := a.Get(t.Context(), store.Key(store.Tenants, "shop"), first); !ok || err != nil {
		t.Errorf("the history is compacted: %v", err)
	}

	c, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := c.Get(t.Context(), "", clientv3.WithFromKey(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		if k := string(kv.Key); !strings.HasPrefix(k, "/a/headgate/") && !strings.HasPrefix(k, "/b/headgate/") {
			t.Errorf("unexpected key %s", k)
		}
	}
}

// A change beyond etcd's limits is rejected, and does not affect the other requests of its queue.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	s := open(t, store.Endpoint{URLs: []string{foreign(t)}, External: true})
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			_, err := s.Do(t.Context(), "ledger", func(tx *store.Tx) error {
				many := 10
				if n == 0 {
					many = 129 // etcd accepts 128
				}
				for i := range many {
					if err := tx.Put(store.Key(store.Tenants, fmt.Sprint(n, "-", i)), i); err != nil {
						return err
					}
				}
				return nil
			})
			if large := errors.Is(err, store.ErrTooLarge); large != (n == 0) || err != nil && !large {
				t.Errorf("%d: %v", n, err)
			}
		})
	}
	all.Wait()
	if has(t, s, "0-0") || !has(t, s, "1-9") || !has(t, s, "19-0") {
		t.Error("an accepted change is missing, or a rejected one is stored")
	}
}

// Read and write permission for the prefix is sufficient. Without it, Open fails at once.
func TestRole(t *testing.T) {
	t.Parallel()
	m := storetest.Start(t)
	storetest.Open(t, m) // wait until it answers
	tls, err := m.TLS()
	if err != nil {
		t.Fatal(err)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: m.URLs(), TLS: tls, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.RoleAdd(ctx, "root"))
	must(c.UserAdd(ctx, "root", "secret"))
	must(c.UserGrantRole(ctx, "root", "root"))
	must(c.RoleAdd(ctx, "headgate"))
	must(c.RoleGrantPermission(ctx, "headgate", "/a/", clientv3.GetPrefixRangeEnd("/a/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(c.UserAddWithOptions(ctx, m.Name, "", &clientv3.UserAddOptions{NoPassword: true})) // authenticated by its certificate
	must(c.UserGrantRole(ctx, m.Name, "headgate"))
	must(c.AuthEnable(ctx))

	s := open(t, store.Endpoint{URLs: m.URLs(), TLS: tls, Prefix: "/a", External: true})
	revision := put(t, s, "shop")
	if _, err := s.Do(ctx, "x", func(tx *store.Tx) error { _, err := tx.Keys(store.Prefix(store.Tenants)); tx.Delete("x"); return err }); err == nil {
		t.Error("a key that is not the service's was removed")
	}
	seen := errors.New("seen")
	if err := s.Watch(ctx, store.Root, revision-1, func(int64, []store.Event) error { return seen }, func(int64) error { return nil }); !errors.Is(err, seen) {
		t.Error(err)
	}
	lead, end := context.WithTimeout(ctx, 10*time.Second)
	defer end()
	led := false
	s.Lead(lead, store.Candidate{Name: "c1"}, func(ctx context.Context, term store.Term) error {
		_, err := term.Do(ctx, "x", func(tx *store.Tx) error { return tx.Put(store.Key(store.Tenants, "led"), 1) })
		led = err == nil
		end()
		return err
	})
	if !led {
		t.Error("no term as the leader")
	}
	began := time.Now()
	if _, err := store.Open(ctx, store.Endpoint{URLs: m.URLs(), TLS: tls, Prefix: "/b", External: true}); err == nil || !strings.Contains(err.Error(), "permission denied") || time.Since(began) > 10*time.Second {
		t.Errorf("with the prefix of another user: %v after %v", err, time.Since(began))
	}
}
