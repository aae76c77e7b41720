package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ProcessTime returns the processor time in seconds of a process, including its threads that have exited; 0 if there is
// no such process.
func ProcessTime(pid int) (seconds float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from field 3, state
	if len(fields) < 13 {
		return 0
	}
	for _, field := range fields[11:13] { // utime, stime
		n, _ := strconv.ParseFloat(field, 64)
		seconds += n / ticksPerSecond
	}
	return seconds
}
