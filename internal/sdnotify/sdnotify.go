// Package sdnotify sends messages to the service manager that started a program, by the protocol of
// sd_notify(3).
package sdnotify

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// New returns a function that sends messages to the service manager, and the interval of WATCHDOG=1 messages: a third of WATCHDOG_USEC, because a busy
// machine may delay one or two. Without a service manager the function does nothing.
func New() (notify func(state string), beat time.Duration) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return func(string) {}, 0
	}
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err == nil && us > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		beat = time.Duration(us) * time.Microsecond / 3
	}
	return func(state string) {
		// Package net converts a leading @ to an abstract socket address. An unreachable service
		// manager is ignored: no message is required for a service to work.
		c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Write([]byte(state))
	}, beat
}

// Reloading returns the message that precedes a reload. systemd requires the time in it
// (Type=notify-reload).
func Reloading() string {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return "RELOADING=1"
	}
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", ts.Nano()/1000)
}
