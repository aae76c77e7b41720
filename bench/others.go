package bench

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// disturbed is the part of one processor that other programs may use before a
// figure is marked as measured beside them.
const disturbed = 0.10

// ticksPerSecond is USER_HZ, which is 100 on every architecture that Go runs on.
const ticksPerSecond = 100

// othersCPU is the processor time in seconds that all programs but this one have
// used, those that they started and waited for included. Threads of the kernel,
// which do the network's work, are left out.
func othersCPU() (seconds float64) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name is in parentheses and may hold anything.
		pid, _, _ := strings.Cut(string(b), " ")
		_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
		f := strings.Fields(rest) // from field 3, state
		if len(f) < 15 || pid == strconv.Itoa(os.Getpid()) || pid == "2" || f[1] == "2" {
			continue
		}
		for _, field := range f[11:15] { // utime, stime, cutime, cstime
			n, _ := strconv.ParseFloat(field, 64)
			seconds += n / ticksPerSecond
		}
	}
	return seconds
}
