package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"headgate.dev/headgate/internal/awake"
)

// disturbed is the part of one processor that may be taken from us before a
// figure is marked as disturbed.
const disturbed = 0.10

// stalled is how long the machine may stand still, in seconds, before that. Ours:
// half of the 100 ms in which a connection has to have its guarantee back.
const stalled = 0.05

// starved is how long an ordinary thread may wait for a processor, in seconds, before that.
// Ours: senders of a seed's network that did so for 1.3 s spoiled its figures.
const starved = 1.0

// ticksPerSecond is USER_HZ, which is 100 on every architecture that Go runs on.
const ticksPerSecond = 100

// taken is processor time in seconds that we could not have.
type taken struct {
	// others is what all other programs have used, those that they started and
	// waited for included; what this one started is its own. Threads of the kernel,
	// which do the network's work, are left out, and so is what runs at SCHED_IDLE,
	// which takes nothing from anyone (package awake).
	others float64
	// stolen is what the hypervisor gave to others while this machine had work.
	stolen float64
	// stall is the longest time for which nothing ran at all, in seconds: a
	// hypervisor that holds the whole machine counts none of that as stolen.
	stall float64
	// starved is the longest time for which an ordinary thread waited for a processor, in
	// seconds.
	starved float64
}

func takenUntilNow() taken { return taken{others: othersCPU(), stolen: awake.Stolen()} }

// since is the part of one processor that was taken in a time.
func (t taken) since(before taken, seconds float64) taken {
	return taken{others: (t.others - before.others) / seconds, stolen: (t.stolen - before.stolen) / seconds}
}

// all orders runs by how much they were disturbed.
func (t taken) all() float64 { return t.others + t.stolen + t.stall + t.starved }

func (t taken) disturbed() bool {
	return t.others+t.stolen >= disturbed || t.stall >= stalled || t.starved >= starved
}

// String says what was taken, if it was enough to disturb.
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
	say(t.stolen, "the hypervisor kept %.0f %% of a processor back", 100*t.stolen)
	if t.stall >= stalled {
		say(t.stall, "no thread of the bench ran for %.0f ms", 1000*t.stall)
	}
	if t.starved >= starved {
		say(t.starved, "threads of this program waited %.1f s for a processor", t.starved)
	}
	return "disturbed: meanwhile " + strings.Join(said, ", ")
}

// idlePolicy is SCHED_IDLE, in field 41 of proc_pid_stat(5).
const idlePolicy = "5"

func othersCPU() (seconds float64) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	used, parent := map[string]float64{}, map[string]string{}
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name is in parentheses and may hold anything.
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
		for range 100 { // a number that was given anew while we read may close a circle
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
