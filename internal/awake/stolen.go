package awake

import (
	"os"
	"strconv"
	"strings"
)

// Stolen is the processor time in seconds that a hypervisor has given to others
// since boot: the eighth value of /proc/stat's first line (proc_stat(5)).
func Stolen() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 {
		return 0
	}
	ticks, _ := strconv.ParseFloat(fields[8], 64)
	return ticks / 100 // USER_HZ
}
