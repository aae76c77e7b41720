package backend

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func lock(t *testing.T, dir string) *Directory {
	t.Helper()
	d, err := LockDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestDirectory checks that a directory has one process at a time, and that the next one knows the last lease of the one before.
func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := lock(t, dir)
	if d.Former() != 0 {
		t.Errorf("a new directory remembers lease %d", d.Former())
	}
	if _, err := LockDirectory(dir); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir+": another controller is running") {
		t.Errorf("a second lock: %v", err)
	}
	for _, lease := range []int64{1 << 62, 7} { // the second text is shorter
		if err := d.Remember(lease); err != nil || d.Former() != lease {
			t.Errorf("after Remember(%d): %d, %v", lease, d.Former(), err)
		}
	}
	d.Close()
	d = lock(t, dir)
	if d.Former() != 7 {
		t.Errorf("the next process knows lease %d, want 7", d.Former())
	}
}

// TestDirectoryOfAnother checks that nothing is remembered where the lock does not show that the process which remembered it has
// ended: in a copy of a directory whose controller may be running, on another machine, and after a restart of this one.
func TestDirectoryOfAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := lock(t, dir) // which is running
	if err := d.Remember(7); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, directoryFile))
	if err != nil {
		t.Fatal(err)
	}
	changed := func(change func(*directoryContent)) string {
		// The file is made first: its text names its own inode.
		copied := t.TempDir()
		c := lock(t, copied)
		content := directoryContent{c.self, 7}
		c.Close()
		change(&content)
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, directoryFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return copied
	}
	if d := lock(t, changed(func(*directoryContent) {})); d.Former() != 7 {
		t.Fatalf("lease %d of an unchanged file, want 7", d.Former())
	}
	copied := t.TempDir()
	for name, text := range map[string][]byte{"a copy": text, "half a file": text[:len(text)/2], "an empty file": nil} {
		if err := os.WriteFile(filepath.Join(copied, directoryFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		d := lock(t, copied)
		if d.Former() != 0 {
			t.Errorf("%s remembers lease %d", name, d.Former())
		}
		d.Close()
	}
	for name, change := range map[string]func(*directoryContent){
		"another boot":   func(c *directoryContent) { c.Boot = "of another machine" },
		"another inode":  func(c *directoryContent) { c.Inode++ },
		"another device": func(c *directoryContent) { c.Device++ },
	} {
		if d := lock(t, changed(change)); d.Former() != 0 {
			t.Errorf("%s remembers lease %d", name, d.Former())
		}
	}
}
