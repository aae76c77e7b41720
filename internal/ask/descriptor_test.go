package ask

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Descriptor duplicates a descriptor of a process, here of this one.
func TestDescriptor(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := Descriptor(os.Getpid(), int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var a, b unix.Stat_t
	if err := unix.Fstat(fd, &a); err != nil || unix.Fstat(int(f.Fd()), &b) != nil || a.Ino != b.Ino || a.Dev != b.Dev {
		t.Errorf("another file: %+v and %+v, %v", a, b, err)
	}
	if _, err := Descriptor(os.Getpid(), 1<<20); err == nil || !strings.Contains(err.Error(), "cannot get descriptor 1048576 of process") {
		t.Errorf("no such descriptor: %v", err)
	}
}
