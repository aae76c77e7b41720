package fabric

import (
	"strings"
	"testing"

	"headgate.dev/headgate/bench/inmemory"
)

func TestEnoughMemory(t *testing.T) {
	if err := enoughMemory(inmemory.Network{Switches: 2, Hosts: 2}); err != nil {
		t.Error(err)
	}
	if err := enoughMemory(inmemory.Network{Switches: 100_000, Hosts: 100_000}); err == nil || !strings.Contains(err.Error(), "GiB") {
		t.Error(err)
	}
	if got := kilobytes("MemTotal: 5 kB\nMemAvailable:   42 kB\n", "MemAvailable:"); got != 42 {
		t.Error(got)
	}
}
