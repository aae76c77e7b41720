package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab/labtest"
)

// On a full disk a controller waits for room, and on a read-only one it says so.
func TestWaitForRoom(t *testing.T) {
	labtest.NeedRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=12m"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	if err := waitForRoom(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	fill := filepath.Join(dir, "fill")
	if err := os.WriteFile(fill, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := waitForRoom(short, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("on a full disk: %v", err)
	}
	time.AfterFunc(200*time.Millisecond, func() { os.Remove(fill) })
	if err := waitForRoom(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := waitForRoom(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "mount it writable") {
		t.Errorf("on a read-only disk: %v", err)
	}
}
