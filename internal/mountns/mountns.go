// Package mountns gives access to outer mount namespaces. A process under `ip netns exec` has a
// mount namespace of its own, with a bare /sys that ends with the command. Mounts that must last,
// or that belong to the machine, are in an outer namespace.
package mountns

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// OuterProcesses returns this process and its ancestors, one for each distinct mount namespace, the
// outermost first. Namespaces that this process may not inspect are left out: a process with fewer
// capabilities than process 1 may not inspect that one's.
func OuterProcesses() (pids []int) {
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

// Path returns a path as the process sees it.
func Path(pid int, path string) string { return fmt.Sprintf("/proc/%d/root%s", pid, path) }

// parent returns field 4 of proc_pid_stat(5). It is 0 if there is no parent, or if the parent is
// outside the PID namespace.
func parent(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The command, in parentheses, may itself contain spaces and parentheses.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(fields[1]) // 0 if the field is not a number
	return ppid
}
