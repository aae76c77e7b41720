package doctor

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/internal/bpfobj"
)

// connections tries the collective control: it attaches to an empty set, and then adopts an open
// connection of its own.
func connections() []Check {
	root, ok := bpfobj.FS()
	if !ok { // creating a table would mount the file system
		return nil
	}
	sweep(root)
	watch, adopt := tryConnections()
	control := checkOf("collective control (sockops)", watch, "collective control can keep a program's connections in proportion under congestion, as far as this host sends over them",
		"no collective control: headgate collective run fails", "use Linux 6.1 or newer, built with CONFIG_CGROUP_BPF, CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF")
	if watch != nil {
		return []Check{control}
	}
	open := checkOf("open connections", adopt, "collective control includes connections that are open when it starts, and those that applications join",
		"collective control ignores connections that are open when it starts, and applications cannot join connections",
		"start the application after collective control, or use Linux 6.13 or newer").onlyLimits()
	var unmade *net.OpError
	if errors.As(adopt, &unmade) {
		open.State, open.Found, open.Remedy = Unknown, "cannot open a connection for the check: "+adopt.Error(), "ip link set lo up"
	}
	return []Check{control, open}
}

// tables is the prefix of the tables' names, before the process ID.
const tables = "doctor-"

// sweep removes the tables that killed doctors left. It ignores errors, because removing them is not
// the doctor's task.
func sweep(root string) {
	left, _ := filepath.Glob(filepath.Join(root, "headgate", "collective", tables+"*"))
	for _, dir := range left {
		name := filepath.Base(dir)
		pid, err := strconv.Atoi(strings.TrimPrefix(name, tables))
		if err != nil || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		if t, err := sockops.Open(name, 2); err == nil {
			_ = t.Remove()
			t.Close()
		}
	}
}

// tryConnections attaches a set, and adopts a connection. The two errors are those of the two steps.
func tryConnections() (watch, adopt error) {
	t, err := sockops.Open(tables+strconv.Itoa(os.Getpid()), 2)
	if err != nil {
		return err, nil
	}
	defer t.Close()
	defer func() { watch = errors.Join(watch, t.Remove()) }()
	const set = 1
	if err := t.Attach(sockops.Set{Number: set}); err != nil {
		return err, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	c, err := net.DialTimeout("tcp", l.Addr().String(), time.Second) // with lo down the kernel retries for two minutes
	if err != nil {
		return nil, err
	}
	defer c.Close()
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, _, err = t.AddConnection(int(f.Fd()), set, 0)
	return nil, err
}
