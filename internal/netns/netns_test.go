package netns

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A new namespace may have the inode number of one that has ended, but never its ID.
func TestIDIsNotReused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to create network namespaces")
	}
	before, err := ID()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{before: true}
	for range 5 {
		id := make(chan string)
		go func() {
			defer close(id)
			runtime.LockOSThread() // the thread and its namespace end with the goroutine
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				t.Error(err)
				return
			}
			one, err := ID()
			two, err2 := ID()
			if err != nil || err2 != nil || one != two {
				t.Errorf("two IDs of one namespace are %q and %q: %v %v", one, two, err, err2)
			}
			id <- one
		}()
		name := <-id
		if name == "" || seen[name] {
			t.Errorf("two namespaces have the ID %q", name)
		}
		seen[name] = true
	}
	if again, err := ID(); err != nil || again != before {
		t.Errorf("the ID of this namespace was %q and is %q: %v", before, again, err)
	}
}
