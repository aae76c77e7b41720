package switching

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/bench"
)

// clock counts the processor time of programs. It is the scheduler's own count, in
// ns, and not the machine's ticks (/proc/stat), in which is also whatever else the
// machine does.
type clock struct {
	mu   sync.Mutex
	seen map[int]time.Duration // the most that each has had, because what has ended tells no more
	base time.Duration         // what they had before
}

// watch adds programs, which count from their own beginning.
func (c *clock) watch(pids ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[int]time.Duration{}
	}
	for _, pid := range pids {
		c.seen[pid] += 0
	}
}

// zero lets all of them count from now.
func (c *clock) zero() {
	c.base = 0
	c.base = c.total()
}

// total is what they have used since zero.
func (c *clock) total() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := -c.base
	for pid := range c.seen {
		c.seen[pid] = max(c.seen[pid], bench.Ran(pid))
		sum += c.seen[pid]
	}
	return sum
}

// glances is how often in a second clocks are read: a program that ends between two
// takes with it what it used since the last.
const glances = 50

// each is what they use in each of n seconds, in percent of one processor.
func (c *clock) each(ctx context.Context, n int) (percent []float64, err error) {
	began, last, at := time.Now(), c.total(), time.Now()
	every := time.NewTicker(time.Second / glances)
	defer every.Stop()
	for len(percent) < n {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-every.C:
		}
		now := c.total()
		if time.Since(began) < time.Duration(len(percent)+1)*time.Second {
			continue
		}
		percent = append(percent, 100*(now-last).Seconds()/time.Since(at).Seconds())
		last, at = now, time.Now()
	}
	return percent, nil
}

// softirqThreads are the kernel's threads that forward packets when there are many,
// one on each processor.
func softirqThreads() (pids []int, err error) {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range names {
		if text, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(text), "ksoftirqd/") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 || bench.Ran(os.Getpid()) == 0 {
		return nil, fmt.Errorf("/proc does not say how long ksoftirqd and programs run (%d threads of ksoftirqd; /proc/PID/task/TID/schedstat): is it that of another process namespace, or of a kernel without CONFIG_SCHED_INFO?", len(pids))
	}
	return pids, nil
}
