package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"headgate.dev/headgate/internal/awake"
)

// disturbedNote begins the note of a run that was disturbed.
const disturbedNote = "disturbed: "

// disturbed is the part of one processor that may be unavailable before a value is marked as
// disturbed.
const disturbed = 0.10

// stalled is how long the machine may stall, in seconds, before that. Chosen by this project: half of
// the 100 ms in which a connection has to regain its guarantee.
const stalled = 0.05

// starved is how long an ordinary thread may wait for a processor, in seconds, before that. Chosen by
// this project: senders that waited for 1.3 s invalidated the results of a network.
const starved = 1.0

// ticksPerSecond is USER_HZ, which is 100 on every architecture that Go runs on.
const ticksPerSecond = 100

// taken is unavailable processor time in seconds.
type taken struct {
	// others is the time of all other programs, including that of children for which they waited;
	// children of this program are its own. It excludes threads of the kernel, which do the network's
	// work, and SCHED_IDLE, which takes no time from others (package awake).
	others float64
	// stolen is the steal time of the hypervisor while this machine had work.
	stolen float64
	// stall is the longest time for which no thread ran, in seconds: a hypervisor that stops the whole
	// machine does not count that as stolen.
	stall float64
	// starved is the longest time for which an ordinary thread waited for a processor, in seconds.
	starved float64
}

func takenUntilNow() taken { return taken{others: othersCPU(), stolen: awake.Stolen()} }

// since returns the part of one processor that was unavailable in a period.
func (t taken) since(before taken, seconds float64) taken {
	return taken{others: (t.others - before.others) / seconds, stolen: (t.stolen - before.stolen) / seconds}
}

// all is the sort key of runs, by how much they were disturbed.
func (t taken) all() float64 { return t.others + t.stolen + t.stall + t.starved }

func (t taken) disturbed() bool {
	return t.others+t.stolen >= disturbed || t.stall >= stalled || t.starved >= starved
}

// String describes the disturbance, if it exceeds a limit.
func (t taken) String() string {
	if !t.disturbed() {
		return ""
	}
	var said []string
	say := func(part float64, format string, value float64) {
		if part >= 0.005 {
			said = append(said, fmt.Sprintf(format, value))
		}
	}
	say(t.others, "other programs used %.0f %% of a processor", 100*t.others)
	say(t.stolen, "steal time was %.0f %% of a processor", 100*t.stolen)
	if t.stall >= stalled {
		say(t.stall, "no thread of the benchmark ran for %.0f ms", 1000*t.stall)
	}
	if t.starved >= starved {
		say(t.starved, "threads of this program waited %.1f s for a processor", t.starved)
	}
	return disturbedNote + strings.Join(said, ", ")
}

// idlePolicy is SCHED_IDLE, in field 41 of proc_pid_stat(5).
const idlePolicy = "5"

func othersCPU() (seconds float64) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	used, parent := map[string]float64{}, map[string]string{}
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has exited
		}
		// The name is in parentheses and may have any characters.
		pid, _, _ := strings.Cut(string(b), " ")
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])) // from field 3, state
		if len(f) < 39 {
			continue
		}
		parent[pid] = f[1]
		if pid == "2" || f[1] == "2" || f[38] == idlePolicy {
			continue
		}
		for _, field := range f[11:15] { // utime, stime, cutime, cstime
			n, _ := strconv.ParseFloat(field, 64)
			used[pid] += n / ticksPerSecond
		}
	}
	self := strconv.Itoa(os.Getpid())
	for pid, n := range used {
		at := pid
		for range 100 { // a pid that is reused while we read may create a cycle
			if at == self || at == "" {
				break
			}
			at = parent[at]
		}
		if at != self {
			seconds += n
		}
	}
	return seconds
}
