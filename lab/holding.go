package lab

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// holding lists the processes that keep one of the namespaces, and by what: a thread in it, an open
// file of it, or a socket that was created in it.
func holding(inodes map[uint64]string) (out []string) {
	var own unix.Stat_t
	if unix.Stat("/proc/self/ns/net", &own) != nil {
		return nil
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	threads, _ := filepath.Glob("/proc/[0-9]*/task/*/ns/net")
	for _, f := range append(files, threads...) {
		var st unix.Stat_t
		if unix.Stat(f, &st) != nil {
			continue // it has exited
		}
		pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
		inode, by := uint64(0), ""
		switch {
		case st.Dev == own.Dev && strings.Contains(f, "/task/"):
			inode, by = st.Ino, "a thread"
		case st.Dev == own.Dev:
			// Its link target does not identify it: for a file of /run/netns that is its path.
			inode, by = st.Ino, "an open file"
		case st.Mode&unix.S_IFMT == unix.S_IFSOCK:
			fd, _ := strconv.Atoi(filepath.Base(f))
			inode, by = madeIn(pid, fd), "a socket"
		}
		if name := inodes[inode]; name != "" {
			out = append(out, fmt.Sprintf("process %d (%s in %s)", pid, by, name))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// madeIn returns the inode of the network namespace in which a process's socket was created, or 0 if
// it cannot be determined.
func madeIn(pid, fd int) (inode uint64) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(process)
	socket, err := unix.PidfdGetfd(process, fd, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(socket)
	ns, err := unix.IoctlRetInt(socket, unix.SIOCGSKNS)
	if err != nil {
		return 0
	}
	defer unix.Close(ns)
	var st unix.Stat_t
	if unix.Fstat(ns, &st) != nil {
		return 0
	}
	return st.Ino
}
