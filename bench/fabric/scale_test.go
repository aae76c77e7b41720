package fabric

import (
	"strings"
	"testing"
)

func TestEnoughMemory(t *testing.T) {
	if err := enoughMemory(memory{Switches: 2, Hosts: 2}); err != nil {
		t.Error(err)
	}
	if err := enoughMemory(memory{Switches: 100_000, Hosts: 100_000}); err == nil || !strings.Contains(err.Error(), "GiB") {
		t.Error(err)
	}
	if got := kilobytes("MemTotal: 5 kB\nMemAvailable:   42 kB\n", "MemAvailable:"); got != 42 {
		t.Error(got)
	}
}
