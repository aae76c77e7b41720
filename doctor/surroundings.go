package doctor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/cgroup2"
)

func environment() []Check {
	available, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	return []Check{cgroups(), congestion(string(available), err), timers()}
}

func cgroups() Check {
	mount, err := cgroup2.Mount()
	if err == nil {
		_, err = cgroup2.ID("/")
	}
	return checkOf("cgroup v2", err, "rules can name services and containers", "rules cannot name cgroups",
		"mount -t cgroup2 none /sys/fs/cgroup").onlyLimits().found(mount)
}

// congestion lists the congestion controls. Benchmarks and lab traffic select among them; groups work
// with any.
func congestion(available string, err error) Check {
	list := strings.Fields(available)
	c := Check{
		About: Machine, Name: "congestion control", State: OK, Found: strings.Join(list, " "),
		Meaning: "benchmarks and labs can use these; groups work with any",
	}
	var lack []string
	for _, want := range []string{"cubic", "bbr"} {
		if !slices.Contains(list, want) {
			lack = append(lack, want)
		}
	}
	switch {
	case err != nil:
		c.State, c.Found, c.Meaning = Limited, err.Error(), "benchmarks and labs cannot select one; groups are not affected"
	case len(lack) > 0:
		c.State, c.Meaning = Limited, "benchmarks with "+strings.Join(lack, " and ")+" cannot run; groups are not affected"
		c.Remedy = "modprobe tcp_" + strings.Join(lack, " tcp_")
	}
	return c
}

// timers checks the resolution of timers, because HTB sends a class's next packet when a timer
// fires. The coarse clock advances with the tick; the fine clock has the timers' resolution.
func timers() Check {
	var tick, fine unix.Timespec
	c := Check{About: Machine, Name: "timers", State: OK, Meaning: "rates are paced with microsecond resolution"}
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		c.State, c.Found = Unknown, err.Error()
		return c
	}
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC, &fine); err != nil {
		c.State, c.Found = Unknown, err.Error()
		return c
	}
	hz := time.Second / max(time.Duration(tick.Nano()), 1)
	if fine.Nano() > int64(time.Microsecond) {
		c.State, c.Found = Limited, fmt.Sprintf("HZ=%d, no high resolution", hz)
		c.Meaning = fmt.Sprintf("rates are paced only every %v: bursts, and delay of that length", time.Duration(tick.Nano()))
		c.Remedy = "use a kernel with CONFIG_HIGH_RES_TIMERS, booted without highres=off"
		return c
	}
	c.Found = fmt.Sprintf("HZ=%d, high resolution", hz)
	return c
}
