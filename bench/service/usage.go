package service

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"headgate/bench"
)

// spent is what controllers and their stores have used and have.
type spent struct {
	processor time.Duration
	memory    float64 // bytes
}

// spent of all controllers that run. Memory is proportional (Pss): what two processes share,
// such as the program's text, counts once.
func (p *place) spent() (sum spent, err error) {
	for _, c := range p.controllers {
		if c.cmd == nil {
			continue
		}
		for _, pid := range family(c.cmd.Process.Pid) {
			one, err := spentBy(pid)
			if err != nil {
				return sum, err
			}
			sum.processor += one.processor
			sum.memory += one.memory
		}
	}
	return sum, nil
}

// family is a process and all that it has started.
func family(pid int) []int {
	all := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				all = append(all, family(n)...)
			}
		}
	}
	return all
}

func spentBy(pid int) (s spent, err error) {
	s.processor = bench.Ran(pid)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" {
			kb, err := strconv.ParseFloat(f[1], 64)
			s.memory = 1024 * kb
			return s, err
		}
	}
	return s, fmt.Errorf("/proc/%d/smaps_rollup does not say what memory it has", pid)
}
