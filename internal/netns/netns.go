// Package netns names network namespaces.
package netns

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ID is the name of the calling thread's network namespace, for use in a file's name. No other has
// it until the machine is started again, unlike the number in /proc/self/ns/net, which the kernel
// gives to the next namespace once this one has ended: what a dead namespace left behind must not
// be taken for a new one's. It is the cookie of Linux 5.14 (SO_NETNS_COOKIE, net/core/net_namespace.c);
// an older kernel has the number alone.
func ID() (string, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("the network namespace cannot be told: %w", err)
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err == nil {
		return strconv.FormatUint(cookie, 10), nil
	}
	if !errors.Is(err, unix.ENOPROTOOPT) {
		return "", fmt.Errorf("the network namespace cannot be told: %w", err)
	}
	number, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return "", fmt.Errorf("the network namespace cannot be told: %w", err)
	}
	return strings.Trim(strings.TrimPrefix(number, "net:"), "[]"), nil
}
