// Package cgroup2 finds the cgroup v2 hierarchy, and the ids that eBPF uses for its cgroups.
package cgroup2

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/mountns"
)

// ErrNoMount means that no cgroup v2 hierarchy is mounted.
var ErrNoMount = errors.New("no cgroup v2 hierarchy is mounted: mount one with \"mount -t cgroup2 none /sys/fs/cgroup\"")

// Mount returns the mount point of the cgroup v2 hierarchy for this process: in its own mount
// namespace, or in an outer one, because `ip netns exec` hides it.
func Mount() (string, error) {
	m, err := findMount()
	return m.dir, err
}

// mounted is a mount of the hierarchy, or of a part of it.
type mounted struct {
	dir  string
	root string // the cgroup at the mount point, as named in the reader's cgroup namespace
}

func findMount() (mounted, error) {
	m, err := mountOf("self")
	if !errors.Is(err, ErrNoMount) {
		return m, err
	}
	for _, pid := range mountns.OuterProcesses() {
		if m, err := mountOf(strconv.Itoa(pid)); err == nil {
			m.dir = mountns.Path(pid, m.dir)
			return m, nil
		}
	}
	return mounted{}, err
}

func mountOf(pid string) (mounted, error) {
	f, err := os.Open("/proc/" + pid + "/mountinfo")
	if err != nil {
		// The cause is not wrapped: callers interpret fs.ErrNotExist as a missing cgroup.
		return mounted{}, fmt.Errorf("cannot find the cgroup hierarchy: %v", err)
	}
	defer f.Close()
	return mount(f)
}

// mount parses proc_pid_mountinfo(5): the fourth field is the mounted part of the file system, the
// fifth the mount point, and the first one after a lone dash the type of the file system.
func mount(mountinfo io.Reader) (mounted, error) {
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if len(fields) >= 5 && strings.HasPrefix(after, "cgroup2 ") {
			plain := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
			return mounted{dir: plain(fields[4]), root: plain(fields[3])}, nil
		}
	}
	return mounted{}, cmp.Or(lines.Err(), ErrNoMount)
}

// ID returns the id of the cgroup at path below the mount point: the value that the helper
// bpf_skb_cgroup_id returns for a socket that was created in this cgroup. A cgroup that is removed
// and created again has a new id. The error is fs.ErrNotExist if there is no such cgroup.
func ID(path string) (uint64, error) {
	m, err := findMount()
	if err != nil {
		return 0, err
	}
	return m.id(path)
}

func (m mounted) id(path string) (uint64, error) {
	// The file handle is the 64-bit id itself (fs/kernfs/mount.c, FILEID_KERNFS).
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, filepath.Join(m.dir, path), 0)
	if err != nil {
		return 0, fmt.Errorf("cgroup %s below %s: %w", path, m.dir, err)
	}
	if h.Size() != 8 {
		return 0, fmt.Errorf("cgroup %s below %s: the file handle has %d bytes, want 8", path, m.dir, h.Size())
	}
	return leUint64(h.Bytes()), nil
}

func leUint64(b []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}
