package etcd

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Prepare completes the certificates after an earlier run was killed at any moment.
func TestPrepareKilled(t *testing.T) {
	m := Member{Name: "c1", Peers: map[string]string{"c1": "127.0.0.1"}, Dir: t.TempDir()}
	if err := m.Prepare(); err != nil {
		t.Fatal(err)
	}
	other := Member{Name: "c1", Peers: m.Peers, Dir: t.TempDir()}
	if err := errors.Join(m.Copy(other.Dir), other.Prepare()); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(other.file("member.key"))
	if err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"with another key": func() error { return write(m.file("member.key"), key) },
		"without a key":    func() error { return os.Remove(m.file("member.key")) },
		"with half a pair": func() error { return os.Truncate(m.file("member.pem"), 100) },
	} {
		if err := errors.Join(do(), m.Prepare()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := m.TLS(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A restore of one of several members needs the shared certificate authority, and creates nothing
// without it.
func TestRestoreUnprepared(t *testing.T) {
	m := Member{Name: "c1", Peers: map[string]string{"c1": "127.0.0.1", "c2": "127.0.0.2", "c3": "127.0.0.3"}, Dir: filepath.Join(t.TempDir(), "new")}
	if err := m.Restore("any", false); !errors.Is(err, ErrNoAuthority) {
		t.Error(err)
	}
	if _, err := os.Stat(m.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory exists: %v", err)
	}
}
