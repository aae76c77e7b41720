// Package cgroup2 finds the cgroup v2 hierarchy and the ids by which eBPF knows
// its groups.
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

	"headgate/internal/mountns"
)

// ErrNoMount means that no cgroup v2 hierarchy is mounted.
var ErrNoMount = errors.New("no cgroup v2 hierarchy is mounted: mount one with \"mount -t cgroup2 none /sys/fs/cgroup\"")

// Mount is where the cgroup v2 hierarchy is mounted, for this process: in its own
// mount namespace, or else in one around it, because `ip netns exec` hides it.
func Mount() (string, error) {
	m, err := find()
	return m.dir, err
}

// mounted is a mount of the hierarchy, or of a part of it.
type mounted struct {
	dir  string
	root string // the cgroup that is there, as the reader's cgroup namespace calls it
}

func find() (mounted, error) {
	m, err := mountOf("self")
	if !errors.Is(err, ErrNoMount) {
		return m, err
	}
	for _, pid := range mountns.Outer() {
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
		// Without its cause as such: who asks for a cgroup takes "no such file" for that cgroup's.
		return mounted{}, fmt.Errorf("cgroups cannot be looked for: %v", err)
	}
	defer f.Close()
	return mount(f)
}

// mount reads proc_pid_mountinfo(5): what of the file system is mounted is the fourth
// field, the mount point the fifth, the file system's type the first after a lone dash.
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

// ID is the id of the cgroup at path below the mount point: what the helper
// bpf_skb_cgroup_id gives for a socket that was made in it. A cgroup that is
// removed and made again has another id. The error is fs.ErrNotExist if there is no such
// cgroup.
func ID(path string) (uint64, error) {
	m, err := find()
	if err != nil {
		return 0, err
	}
	return m.id(path)
}

func (m mounted) id(path string) (uint64, error) {
	// The handle is the 64-bit id itself (fs/kernfs/mount.c, FILEID_KERNFS).
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, filepath.Join(m.dir, path), 0)
	if err != nil {
		return 0, fmt.Errorf("cgroup %s below %s: %w", path, m.dir, err)
	}
	if h.Size() != 8 {
		return 0, fmt.Errorf("cgroup %s below %s: its handle has %d bytes where 8 are right", path, m.dir, h.Size())
	}
	return leUint64(h.Bytes()), nil
}

func leUint64(b []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}
