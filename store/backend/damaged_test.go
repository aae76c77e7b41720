package backend

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/store/etcd"
	"headgate.dev/headgate/store/storetest"
)

// A store whose data is lost does not begin as a new one, and one whose log is damaged says so within seconds, in one sentence.
func TestDamagedData(t *testing.T) {
	t.Parallel()
	ports := storetest.Ports(t, 2)
	m := etcd.Member{Name: "a", Peers: map[string]string{"a": "127.0.0.1"}, Dir: filepath.Join(t.TempDir(), "store"), ClientPort: ports[0], PeerPort: ports[1]}
	open := func() error {
		s, stop, err := Run(t.Context(), m, storetest.Command(t))
		if err == nil {
			put(t, s)
			stop()
		}
		return err
	}
	for range 2 {
		if err := open(); err != nil {
			t.Fatal(err)
		}
	}
	logs, err := filepath.Glob(filepath.Join(m.DataDir(), "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	text, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := 100; i < 400; i++ {
		text[i] ^= 0xff
	}
	if err := os.WriteFile(logs[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = open()
	if err == nil || !errors.Is(err, etcd.ErrNoStart) || !strings.Contains(err.Error(), "restore a backup") || strings.Contains(err.Error(), "\n") || len(err.Error()) > 600 {
		t.Errorf("with a damaged log: %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("after %v", took)
	}
	if err := os.RemoveAll(m.DataDir()); err != nil {
		t.Fatal(err)
	}
	if err := open(); !errors.Is(err, etcd.ErrDataLost) {
		t.Errorf("without its data: %v", err)
	}
	if _, err := os.Stat(m.DataDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has begun with new data: %v", err)
	}
}
