package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/etcd"
	"headgate.dev/headgate/store/storetest"
)

func put(t *testing.T, s *store.Store, name string) int64 {
	t.Helper()
	key := store.Key(store.Tenants, name)
	revision, err := s.Do(t.Context(), key, func(tx *store.Tx) error { return tx.Put(key, name) })
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func has(t *testing.T, s *store.Store, name string) bool {
	t.Helper()
	_, ok, err := s.Get(t.Context(), store.Key(store.Tenants, name), 0)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// A restore has the documents of the backup, at a revision above all earlier ones and in one new
// epoch, however often Restored is called.
func TestRestore(t *testing.T) {
	t.Parallel()
	m := storetest.Start(t)
	s := storetest.Open(t, m)
	put(t, s, "before")
	file := filepath.Join(t.TempDir(), "backup")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Backup(t.Context(), f), f.Close()); err != nil {
		t.Fatal(err)
	}
	last := put(t, s, "after")
	m.Stop()

	if err := m.Restore(file, false); !errors.Is(err, etcd.ErrDataExists) {
		t.Errorf("restore over existing data: %v", err)
	}
	fresh := m.Member
	fresh.Dir = t.TempDir()
	if err := m.Copy(fresh.Dir); err != nil {
		t.Fatal(err)
	}
	if err := fresh.Restore(file, false); err != nil {
		t.Fatal(err)
	}
	s = storetest.Open(t, storetest.Run(t, fresh))
	if !has(t, s, "before") || has(t, s, "after") {
		t.Error("the documents are not those of the backup")
	}
	if now := put(t, s, "then"); now <= last {
		t.Errorf("the revision is %d, want more than %d", now, last)
	}
	id, confirmed, done, err := fresh.PendingRestore()
	if err != nil || id == "" || confirmed {
		t.Fatal(id, confirmed, err)
	}
	began := uint64(time.Now().Unix())
	var epoch uint64
	for n := range 2 {
		if err := s.Restored(t.Context(), id, false); err != nil {
			t.Fatal(err)
		}
		p, err := s.Position(t.Context())
		if err != nil || p.Epoch < began || p.Revision <= last || n > 0 && p.Epoch != epoch {
			t.Errorf("the position is %+v, %v", p, err)
		}
		epoch = p.Epoch
	}
	if err := done(); err != nil {
		t.Fatal(err)
	}
	if id, _, _, err := fresh.PendingRestore(); id != "" || err != nil {
		t.Errorf("Restored returns the id again: %q, %v", id, err)
	}
}

// A confirmed restore leaves no mark, and one that is not leaves one, once for all members that restore the same file.
func TestRestoreMark(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Start(t))
	marked := func() bool {
		_, there, err := s.Get(t.Context(), store.RestoreKey, 0)
		if err != nil {
			t.Fatal(err)
		}
		return there
	}
	for _, c := range []struct {
		id        string
		confirmed bool
		want      bool
	}{{"one", true, false}, {"two", false, true}} {
		if err := s.Restored(t.Context(), c.id, c.confirmed); err != nil {
			t.Fatal(err)
		}
		if got := marked(); got != c.want {
			t.Errorf("restore %s: marked %v, want %v", c.id, got, c.want)
		}
	}
	if _, err := s.Do(t.Context(), store.RestoreKey, func(tx *store.Tx) error { tx.Delete(store.RestoreKey); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Restored(t.Context(), "two", false); err != nil { // of another member, which starts later
		t.Fatal(err)
	}
	if marked() {
		t.Error("a confirmed restore waits for a confirmation again")
	}
}

// three runs a cluster of three members, c1 to c3.
func three(t *testing.T, quota int64) (members map[string]etcd.Member, runs map[string]*storetest.Member) {
	t.Helper()
	ports := storetest.Ports(t, 2)
	peers := map[string]string{"c1": "127.0.0.1", "c2": "127.0.0.2", "c3": "127.0.0.3"}
	members = map[string]etcd.Member{}
	for name := range peers {
		members[name] = etcd.Member{Name: name, Peers: peers, Dir: t.TempDir(), ClientPort: ports[0], PeerPort: ports[1], Quota: quota}
	}
	if err := members["c1"].Prepare(); err != nil {
		t.Fatal(err)
	}
	runs = map[string]*storetest.Member{}
	for name, m := range members {
		if name != "c1" {
			if err := members["c1"].Copy(m.Dir); err != nil {
				t.Fatal(err)
			}
		}
		runs[name] = storetest.Run(t, m)
	}
	return members, runs
}

// A member that lost its directory is replaced, and the new one has the cluster's data.
func TestReplace(t *testing.T) {
	t.Parallel()
	members, runs := three(t, 0)
	s := storetest.Open(t, runs["c1"])
	put(t, s, "before")
	runs["c3"].Stop()
	fresh := members["c3"]
	fresh.Dir = t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if err := members["c1"].Replace(ctx, "c3", fresh.Dir); err != nil {
		t.Fatal(err)
	}
	runs["c3"] = storetest.Run(t, fresh)
	// The cluster now tolerates the failure of another member.
	alone := fresh
	alone.Peers = map[string]string{"c3": fresh.Peers["c3"]}
	tls, err := alone.TLS()
	if err != nil {
		t.Fatal(err)
	}
	third, err := store.Open(ctx, store.Endpoint{URLs: alone.URLs(), TLS: tls})
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	runs["c2"].Stop()
	for {
		if err := third.Ready(ctx); err == nil {
			break
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if !has(t, third, "before") {
		t.Error("the new member does not have the cluster's data")
	}
	put(t, third, "after")
}
