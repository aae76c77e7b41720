package awake

import (
	"os"
	"strconv"
	"strings"
)

// Stolen returns the stolen processor time since boot, in seconds: the eighth value of the first
// line of /proc/stat (proc_stat(5)).
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
