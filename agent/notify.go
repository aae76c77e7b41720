package agent

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Notifier speaks the protocol of sd_notify(3) with the service manager that
// started us, and says how often it wants to hear WATCHDOG=1: a third of
// WATCHDOG_USEC, because a busy machine may delay one or two. Without a service
// manager it does nothing.
func Notifier() (notify func(state string), beat time.Duration) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return func(string) {}, 0
	}
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err == nil && us > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		beat = time.Duration(us) * time.Microsecond / 3
	}
	return func(state string) {
		// A leading @ is an abstract socket; package net knows that sign. Nothing
		// can be done, or is lost, if nobody listens.
		c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Write([]byte(state))
	}, beat
}

// reloading is the message before the files are read again; systemd wants the
// time with it (Type=notify-reload).
func reloading() string {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return "RELOADING=1"
	}
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", ts.Nano()/1000)
}
