package wire

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// While there are links a growing heap maps no memory.
func TestHeapIsMapped(t *testing.T) {
	begin(1)
	defer end(1)
	before := mapped(t)
	var keep [][]byte
	for range 64 << 20 >> 13 {
		keep = append(keep, make([]byte, 1<<13))
	}
	if grown := mapped(t) - before; grown > 1<<20 {
		t.Errorf("%d KiB were mapped for %d objects of 8 KiB", grown>>10, len(keep))
	}
}

// mapped returns the size of the program's private writable memory in bytes, used or not.
func mapped(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^VmData:\s*(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("no VmData in %s", status)
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
