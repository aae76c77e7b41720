// Package bpfobj finds a place for eBPF objects that outlive the process, and tells
// how the keys and values of their maps are laid out.
package bpfobj

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"headgate/internal/mountns"
)

// ErrNoFS means that there is no bpf file system that would outlive us.
var ErrNoFS = errors.New("no bpf file system is mounted: mount one with \"mount -t bpf bpf /sys/fs/bpf\"")

const mountPoint = "/sys/fs/bpf"

// FS is where the bpf file system is mounted, in the outermost mount namespace
// that has one: ours may end with the command, and each mount is another file
// system.
func FS() (dir string, ok bool) {
	for _, pid := range mountns.Outer() {
		if dir := mountns.Path(pid, mountPoint); isBPF(dir) {
			return dir, true
		}
	}
	return "", false
}

// PinDir is a folder of that name in the bpf file system, made if needed. What
// is pinned there stays until it is removed or the machine restarts. Without a
// file system it mounts one, unless in a mount namespace that might end before
// the machine does.
func PinDir(name string) (string, error) {
	if root, ok := FS(); ok {
		return makeDir(root, name)
	}
	if !outermost() {
		return "", ErrNoFS
	}
	if err := unix.Mount("bpf", mountPoint, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
		return "", fmt.Errorf("%w (%v)", ErrNoFS, err)
	}
	return makeDir(mountPoint, name)
}

// initialMountNS is the number of the machine's own mount namespace from Linux 6.18 on
// (include/uapi/linux/nsfs.h, MNT_NS_INIT_INO); before, it was none in particular.
const initialMountNS = "mnt:[4026531832]"

// outermost tells whether our mount namespace is the first process's. That of a process with
// more capabilities than ours cannot be read.
func outermost() bool {
	ours, err := os.Readlink("/proc/thread-self/ns/mnt") // the first thread may be in another
	if err != nil {
		return false
	}
	first, err := os.Readlink("/proc/1/ns/mnt")
	return err == nil && ours == first || ours == initialMountNS
}

func makeDir(root, name string) (string, error) {
	dir := filepath.Join(root, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make a folder in the bpf file system: %w", err)
	}
	return dir, nil
}

func isBPF(path string) bool {
	var s unix.Statfs_t
	return unix.Statfs(path, &s) == nil && uint32(s.Type) == unix.BPF_FS_MAGIC
}
