package netns

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A namespace that ends gives its number to the next; its name goes to none.
func TestIDIsNotUsedAgain(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to make network namespaces")
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
			runtime.LockOSThread() // and the thread, with its namespace, ends with the goroutine
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				t.Error(err)
				return
			}
			one, err := ID()
			two, err2 := ID()
			if err != nil || err2 != nil || one != two {
				t.Errorf("one namespace is %q and %q: %v %v", one, two, err, err2)
			}
			id <- one
		}()
		name := <-id
		if name == "" || seen[name] {
			t.Errorf("another namespace is called %q too", name)
		}
		seen[name] = true
	}
	if again, err := ID(); err != nil || again != before {
		t.Errorf("this namespace was %q and is %q: %v", before, again, err)
	}
}
