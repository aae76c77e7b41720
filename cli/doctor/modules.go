package doctor

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ours are the kernel modules that the trial may cause to be loaded.
var ours = []string{"sch_htb", "sch_tbf", "sch_ingress", "cls_bpf", "act_mirred", "ifb", "sch_fq_codel", "sch_fq", "sch_netem", "veth", "tun"}

// modules are the names of those that are loaded.
type modules []string

func loadedModules() modules {
	f, err := os.Open("/proc/modules")
	if err != nil {
		return ours // a kernel without modules, or without a word on them: none will be unloaded
	}
	defer f.Close()
	var m modules
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, _, _ := strings.Cut(lines.Text(), " ")
		m = append(m, name)
	}
	return m
}

// unloadNew takes away what was loaded since. The kernel refuses what is in use;
// what the trial used is let go of a little after its namespace is gone.
func (m modules) unloadNew() {
	for range 10 {
		left := m.added(loadedModules())
		if len(left) == 0 {
			return
		}
		for _, name := range left {
			_ = unix.DeleteModule(name, unix.O_NONBLOCK)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (m modules) added(now modules) (names []string) {
	for _, name := range ours {
		if slices.Contains(now, name) && !slices.Contains(m, name) {
			names = append(names, name)
		}
	}
	return names
}
