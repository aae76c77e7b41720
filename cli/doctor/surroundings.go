package doctor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/cgroup2"
)

func surroundings() []Check {
	available, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	return []Check{cgroups(), congestion(string(available), err), timers()}
}

func cgroups() Check {
	mount, err := cgroup2.Mount()
	if err == nil {
		_, err = cgroup2.ID("/")
	}
	return tried("cgroup v2", err, "rules can name services and containers", "rules cannot name cgroups",
		"mount -t cgroup2 none /sys/fs/cgroup").onlyLimits().found(mount)
}

// congestion: what benches and relays choose among; groups work with any.
func congestion(available string, err error) Check {
	list := strings.Fields(available)
	c := Check{
		About: Machine, Name: "congestion control", State: OK, Found: strings.Join(list, " "),
		Means: "benches and labs can choose among these; groups work with any",
	}
	var lack []string
	for _, want := range []string{"cubic", "bbr"} {
		if !slices.Contains(list, want) {
			lack = append(lack, want)
		}
	}
	switch {
	case err != nil:
		c.State, c.Found, c.Means = Limited, err.Error(), "benches and labs cannot choose; groups work all the same"
	case len(lack) > 0:
		c.State, c.Means = Limited, "benches with "+strings.Join(lack, " and ")+" cannot run; groups work all the same"
		c.Remedy = "modprobe tcp_" + strings.Join(lack, " tcp_")
	}
	return c
}

// timers: HTB sends a class's next packet when a timer fires. The coarse clock
// advances with the tick, and the fine one is as fine as timers are.
func timers() Check {
	var tick, fine unix.Timespec
	c := Check{About: Machine, Name: "timers", State: OK, Means: "rates are paced by the microsecond"}
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
		c.Means = fmt.Sprintf("rates are paced every %v only: bursts, and delay of that length", time.Duration(tick.Nano()))
		c.Remedy = "use a kernel with CONFIG_HIGH_RES_TIMERS, booted without highres=off"
		return c
	}
	c.Found = fmt.Sprintf("HZ=%d, high resolution", hz)
	return c
}
