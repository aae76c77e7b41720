package backend

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/etcd"
	"headgate.dev/headgate/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Main()
	if spec := os.Getenv(candidateEnv); spec != "" {
		candidateMain(spec)
	}
	os.Exit(m.Run())
}

// service is the key of a document of a service.
var service = store.Key(store.Service, "name")

func put(t *testing.T, s *store.Store) {
	t.Helper()
	if _, err := s.Do(t.Context(), service, func(tx *store.Tx) error { return tx.Put(service, "x") }); err != nil {
		t.Fatal(err)
	}
}

// TestExternalBackwards checks that an external etcd at an earlier position than before is refused, at the
// start and later, until a new epoch begins.
func TestExternalBackwards(t *testing.T) {
	t.Parallel()
	m := storetest.Start(t)
	tls, err := m.TLS()
	if err != nil {
		t.Fatal(err)
	}
	e := External{Endpoint: store.Endpoint{URLs: m.URLs(), TLS: tls, Prefix: "/prod", External: true}, Dir: t.TempDir()}
	file := filepath.Join(e.Dir, positionFile)
	open := func() *store.Store {
		t.Helper()
		s, err := e.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := open()
	if _, err := e.Restored(t.Context()); !errors.Is(err, ErrNoService) {
		t.Errorf("a restore without a service: %v", err)
	}
	put(t, s)
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"revision":`) {
		t.Errorf("the position was not stored: %s, %v", text, err)
	}
	if err := os.WriteFile(file, []byte(`{"epoch": 0, "revision": 1000000}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Open(t.Context()); !errors.Is(err, ErrBackwards) || !strings.Contains(err.Error(), "from 1000000 (epoch 0) to ") {
		t.Errorf("open of an etcd whose position went backwards: %v", err)
	}
	if err := e.WatchPosition(t.Context(), s); !errors.Is(err, ErrBackwards) {
		t.Errorf("watch of an etcd whose position went backwards: %v", err)
	}
	epoch, err := e.Restored(t.Context())
	if err != nil || epoch == 0 {
		t.Fatalf("epoch %d, %v", epoch, err)
	}
	s = open()
	if p, err := s.Position(t.Context()); err != nil || p.Epoch != epoch {
		t.Errorf("position %+v, %v, want epoch %d", p, err, epoch)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := e.WatchPosition(ended, s); err != nil {
		t.Errorf("the watch that its context ends: %v", err)
	}
	if err := os.WriteFile(file, []byte("half a fi"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot read the last etcd position from "+file) {
		t.Errorf("open with a damaged position file: %v", err)
	}
}

// TestUnreachable checks that the error of an etcd that cannot be reached has the cause.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	const at = "http://127.0.0.1:1" // no program of this machine listens on port 1
	_, err := External{Endpoint: store.Endpoint{URLs: []string{at}}}.connect(t.Context(), openTimeout/10)
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("connect: %v", err)
	}
}

func controllers(t *testing.T, members ...config.Member) config.Controllers {
	t.Helper()
	ports := storetest.Ports(t, 2)
	return config.Controllers{Members: members, Store: uint16(ports[0]), Peers: uint16(ports[1])}
}

// TestBackupAndRestore checks that a store that runs in a data directory can be backed up, and that the
// restored one begins one new epoch, however often it is run.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	one := controllers(t, config.Member{Name: "c1", Address: "0.0.0.0"})
	dir, second := t.TempDir(), t.TempDir()
	m := Member(dir, "c1", one)
	if m.Peers["c1"] != "127.0.0.1" {
		t.Errorf("the member listens on %s", m.Peers["c1"])
	}
	s, end, err := Run(t.Context(), m, storetest.Command(t))
	if err != nil {
		t.Fatal(err)
	}
	put(t, s)
	file := filepath.Join(t.TempDir(), "backup")
	running, err := Connect(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	size, err := Backup(t.Context(), running, file)
	if info, wrong := os.Stat(file); err != nil || wrong != nil || info.Size() != size {
		t.Errorf("backup of %d bytes: %v, %v", size, err, wrong)
	}
	if _, err := Backup(t.Context(), running, file); err == nil || !strings.Contains(err.Error(), "choose a new file") {
		t.Errorf("backup over a file: %v", err)
	}
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	running.Close()
	end()
	if _, err := Connect(t.Context(), second); err == nil || !strings.Contains(err.Error(), second+" is not a controller's data directory") {
		t.Errorf("connect to another directory: %v", err)
	}
	m = Member(second, "c1", one)
	if err := m.Restore(file, false); err != nil {
		t.Fatal(err)
	}
	var epochs [2]uint64
	for i := range epochs {
		s, end, err := Run(t.Context(), m, storetest.Command(t))
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Position(t.Context())
		if _, ok, wrong := s.Get(t.Context(), service, 0); err != nil || wrong != nil || !ok || p.Epoch == 0 {
			t.Errorf("position %+v, document %v: %v, %v", p, ok, err, wrong)
		}
		epochs[i] = p.Epoch
		end()
	}
	if epochs[0] != epochs[1] {
		t.Errorf("epochs of the two runs: %v", epochs)
	}
}

// TestNotPrepared checks that one of several members does not create an authority of its own.
func TestNotPrepared(t *testing.T) {
	dir := t.TempDir()
	m := Member(dir, "c1", controllers(t, config.Member{Name: "c1", Address: "127.0.0.1"}, config.Member{Name: "c2", Address: "127.0.0.2"}, config.Member{Name: "c3", Address: "127.0.0.3"}))
	if _, _, err := Run(t.Context(), m, storetest.Command(t)); !errors.Is(err, etcd.ErrNoAuthority) {
		t.Errorf("run: %v", err)
	}
	if _, err := os.Stat(memberDir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was created: %v", err)
	}
	if free, err := FreeSpace(dir); err != nil || free == 0 {
		t.Errorf("free space: %d, %v", free, err)
	}
}
