package shapertest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

// snapshot returns all traffic control and all devices of a node, as printed by tc and ip: the
// state that Clear must restore.
func snapshot(t testing.TB, n *lab.Node, devs ...string) string {
	t.Helper()
	var b strings.Builder
	show := func(name string, args ...string) {
		fmt.Fprintf(&b, "$ %s %s\n%s", name, strings.Join(args, " "), labtest.Run(t, n, name, args...))
	}
	show("tc", "-d", "qdisc", "show")
	for _, d := range devs {
		show("tc", "-d", "class", "show", "dev", d)
		show("tc", "-d", "filter", "show", "dev", d, "ingress")
		show("tc", "-d", "filter", "show", "dev", d, "egress")
	}
	show("ip", "-d", "link")
	// ip prints this error if any namespace of the machine is removed meanwhile.
	return volatile.ReplaceAllString(strings.ReplaceAll(b.String(), "Error: Peer netns reference is invalid.\n", ""), "")
}

// volatile matches values that change by themselves.
var volatile = regexp.MustCompile(` (refcnt|tcp_metrics|gc_timer|hello_timer) +[0-9.]+`)

// watch subscribes to the kernel's notifications about devices and traffic control of a node,
// and returns a function that returns the notifications received since.
func watch(t testing.TB, n *lab.Node) (said func() []string) {
	t.Helper()
	var c *netlink.Conn
	err := n.Do(func() (err error) {
		c, err = netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{Groups: 1<<(unix.RTNLGRP_TC-1) | 1<<(unix.RTNLGRP_LINK-1)})
		return err
	})
	if err != nil {
		t.Fatalf("watch the kernel: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return func() (out []string) {
		buf := make([]byte, 1<<16)
		for {
			var size int
			var rerr error
			err := raw.Control(func(fd uintptr) { size, _, rerr = unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT) })
			if err != nil || rerr != nil {
				return out
			}
			if size >= 16 {
				out = append(out, fmt.Sprintf("a netlink message of type %d, %d bytes", uint16(buf[4])|uint16(buf[5])<<8, size))
			}
		}
	}
}
