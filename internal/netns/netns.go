// Package netns identifies network namespaces.
package netns

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ID returns an identifier of the calling thread's network namespace that can be part of a file
// name. No other namespace has it until the machine reboots. In contrast, the kernel reuses the
// inode number of /proc/self/ns/net for a new namespace after the old one has ended, and the files
// of the old one must not be used for the new one. ID is the cookie of Linux 5.14 (SO_NETNS_COOKIE,
// net/core/net_namespace.c); on an older kernel it is the inode number.
func ID() (string, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("cannot determine the network namespace: %w", err)
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err == nil {
		return strconv.FormatUint(cookie, 10), nil
	}
	if !errors.Is(err, unix.ENOPROTOOPT) {
		return "", fmt.Errorf("cannot determine the network namespace: %w", err)
	}
	number, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return "", fmt.Errorf("cannot determine the network namespace: %w", err)
	}
	return strings.Trim(strings.TrimPrefix(number, "net:"), "[]"), nil
}
