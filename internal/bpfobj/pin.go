// Package bpfobj pins eBPF objects that outlive the process, and describes the layouts of keys and
// values in their maps.
package bpfobj

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/mountns"
)

// ErrNoFS means that no bpf file system is mounted that outlives the process.
var ErrNoFS = errors.New("no bpf file system is mounted: mount one with \"mount -t bpf bpf /sys/fs/bpf\"")

const mountPoint = "/sys/fs/bpf"

// FS returns the mount point of the bpf file system in the outermost mount namespace that has one.
// The process's own mount namespace may end with the command, and each mount is a separate file
// system.
func FS() (dir string, ok bool) {
	for _, pid := range mountns.OuterProcesses() {
		if dir := mountns.Path(pid, mountPoint); isBPF(dir) {
			return dir, true
		}
	}
	return "", false
}

// PinDir returns a directory with this name in the bpf file system, which it creates if necessary.
// Objects that are pinned there stay until they are removed or the machine reboots. If no bpf file
// system is mounted, PinDir mounts one, unless the mount namespace may end before the machine
// reboots.
func PinDir(name string) (string, error) {
	if root, ok := FS(); ok {
		return makeDir(root, name)
	}
	if !inInitialMountNS() {
		return "", ErrNoFS
	}
	if err := unix.Mount("bpf", mountPoint, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
		return "", fmt.Errorf("%w (%v)", ErrNoFS, err)
	}
	return makeDir(mountPoint, name)
}

// initialMountNS is the inode number of the initial mount namespace since Linux 6.18
// (include/uapi/linux/nsfs.h, MNT_NS_INIT_INO). Earlier kernels have no fixed number.
const initialMountNS = "mnt:[4026531832]"

// inInitialMountNS reports whether the mount namespace is that of process 1. The namespace of a process
// with more capabilities than this one cannot be read.
func inInitialMountNS() bool {
	ours, err := os.Readlink("/proc/thread-self/ns/mnt") // the first thread may be in another namespace
	if err != nil {
		return false
	}
	first, err := os.Readlink("/proc/1/ns/mnt")
	return err == nil && ours == first || ours == initialMountNS
}

func makeDir(root, name string) (string, error) {
	dir := filepath.Join(root, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot create a directory in the bpf file system: %w", err)
	}
	return dir, nil
}

func isBPF(path string) bool {
	var s unix.Statfs_t
	return unix.Statfs(path, &s) == nil && uint32(s.Type) == unix.BPF_FS_MAGIC
}
