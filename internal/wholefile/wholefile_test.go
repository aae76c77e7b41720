package wholefile

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// writerEnv makes this program write a file in a loop.
const writerEnv = "HEADGATE_TEST_WRITE"

func TestMain(m *testing.M) {
	if name := os.Getenv(writerEnv); name != "" {
		for i := 0; ; i++ {
			if err := Write(name, text(i), 0o600); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

// text returns one of three contents, which differ in their byte and length.
func text(i int) []byte { return bytes.Repeat([]byte{'a' + byte(i%3)}, 100_000*(i%3+1)) }

// whole fails the test unless a file has one of these contents.
func whole(t *testing.T, name string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if bytes.Equal(got, text(i)) {
			return
		}
	}
	t.Fatalf("the file has %d bytes that were not written as a whole", len(got))
}

// A reader finds a complete file, also after its writer was killed.
func TestKilled(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := Write(name, text(0), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), writerEnv+"="+name)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(time.Duration(30+7*i) * time.Millisecond); time.Now().Before(until); {
			whole(t, name)
		}
		c.Process.Kill()
		c.Wait()
		whole(t, name)
	}
}

// Concurrent writers do not mix their contents, and leave no files behind.
func TestConcurrentWriters(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			for range 20 {
				if err := Write(name, text(i), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	whole(t, name)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("directory contains %v, %v", entries, err)
	}
}

// A file has the requested mode, whatever the umask.
func TestMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	name := filepath.Join(t.TempDir(), "file")
	for _, mode := range []os.FileMode{0o600, 0o644} {
		if err := Write(name, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("the mode is %v, want %v, %v", info.Mode(), mode, err)
		}
	}
}

// A failed write leaves the old file, and the error names the path.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := os.Mkdir(name, 0o700); err != nil { // a directory with the name of the file
		t.Fatal(err)
	}
	if err := Write(name, text(0), 0o600); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("replacing a directory: %v", err)
	}
	if err := Write(filepath.Join(dir, "none", "file"), nil, 0o600); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a missing directory: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("directory contains %v, %v", entries, err)
	}
}
