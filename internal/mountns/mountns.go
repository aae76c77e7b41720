// Package mountns looks out of a mount namespace. What runs under `ip netns exec`
// has one of its own, with a bare /sys that ends with the command; what is meant
// to last, or is the machine's, is mounted in the one around it.
package mountns

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Outer are the processes that we come from and at last our own, each with
// another mount namespace and the outermost first, so far as we may look into
// them: a process with fewer capabilities than the first may not look there.
func Outer() (pids []int) {
	seen := map[string]bool{}
	var chain []int
	for pid := os.Getpid(); pid > 0; pid = parent(pid) {
		chain = append([]int{pid}, chain...)
	}
	for _, pid := range chain {
		ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if err == nil && !seen[ns] {
			seen[ns] = true
			pids = append(pids, pid)
		}
	}
	return pids
}

// Path is a path as that process sees it.
func Path(pid int, path string) string { return fmt.Sprintf("/proc/%d/root%s", pid, path) }

// parent is field 4 of proc_pid_stat(5); 0 is none, or one outside of our
// process namespace.
func parent(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The command, in brackets, may itself hold spaces and brackets.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(fields[1]) // 0 if the kernel speaks another language
	return ppid
}
