package doctor

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// trialModules has the kernel modules that the trial may load.
var trialModules = []string{"sch_htb", "sch_tbf", "sch_ingress", "cls_bpf", "act_mirred", "ifb", "sch_fq_codel", "sch_fq", "sch_netem", "veth", "tun"}

// modules has the names of the loaded kernel modules.
type modules []string

func loadedModules() modules {
	f, err := os.Open("/proc/modules")
	if err != nil {
		return trialModules // a kernel without modules, or without a list of them: unload none
	}
	defer f.Close()
	var m modules
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, _, _ := strings.Cut(lines.Text(), " ")
		m = append(m, name)
	}
	return m
}

// unloadNew unloads the modules that were loaded since. The kernel refuses to unload modules
// in use. It retries, because the trial's modules are released a little after its namespace ends.
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
	for _, name := range trialModules {
		if slices.Contains(now, name) && !slices.Contains(m, name) {
			names = append(names, name)
		}
	}
	return names
}
