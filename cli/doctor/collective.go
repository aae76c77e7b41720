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

	"headgate/collective/sockops"
	"headgate/internal/bpfobj"
)

// connections tries the collective control: it watches nobody's connections, and then takes in
// one of our own that is open.
func connections() []Check {
	root, ok := bpfobj.FS()
	if !ok { // to make a table would mount it
		return nil
	}
	sweep(root)
	watch, adopt := tryConnections()
	control := tried("collective control (sockops)", watch, "a program's connections are kept in proportion under congestion",
		"they are not: headgate collective run fails", "use Linux 6.1 or newer, built with CONFIG_CGROUP_BPF, CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF")
	if watch != nil {
		return []Check{control}
	}
	open := tried("connections that are open", adopt, "the collective control takes them in when it starts, and when an application asks",
		"the collective control leaves those alone that are older than it, and no application can ask",
		"start the application after it, or use Linux 6.13 or newer").onlyLimits()
	var unmade *net.OpError
	if errors.As(adopt, &unmade) {
		open.State, open.Found, open.Remedy = Unknown, "none was made to try: "+adopt.Error(), "ip link set lo up"
	}
	return []Check{control, open}
}

// tables begin with this, and the pid of who tries.
const tables = "doctor-"

// sweep takes away what killed doctors left; if it cannot, it was not told to.
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

// tryConnections watches, and takes a connection in.
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
	c, err := net.DialTimeout("tcp", l.Addr().String(), time.Second) // with lo down the kernel tries for two minutes
	if err != nil {
		return nil, err
	}
	defer c.Close()
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, _, err = t.Adopt(int(f.Fd()), set, 0)
	return nil, err
}
