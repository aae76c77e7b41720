package service

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
)

// spent is the processor time and memory of controllers and their stores.
type spent struct {
	processor time.Duration
	memory    float64 // bytes
}

// spent returns that of all running controllers. Memory is proportional (Pss): shared memory of two
// processes, such as the program's text, counts once.
func (p *place) spent() (sum spent, err error) {
	for _, c := range p.controllers {
		if c.cmd == nil {
			continue
		}
		for _, pid := range bench.Family(c.cmd.Process.Pid) {
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
	return s, fmt.Errorf("/proc/%d/smaps_rollup has no memory size", pid)
}
