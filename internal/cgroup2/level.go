package cgroup2

import (
	"errors"
	"os"
	"path"
	"strings"
)

// ErrPartialHierarchy means that levels are unknown, because only a part of the hierarchy is mounted, as in a
// container, and its depth is unknown.
var ErrPartialHierarchy = errors.New("only a part of the cgroup hierarchy is mounted: run headgate outside of the container or with the host's cgroup namespace")

// Level returns how many levels the cgroup at path below the mount point is below the root of the
// hierarchy, as the kernel counts them (struct cgroup.level, bpf_skb_ancestor_cgroup_id). It does
// not check that the cgroup exists.
func Level(path string) (uint32, error) {
	m, err := findMount()
	if err != nil {
		return 0, err
	}
	id, err := m.id("/")
	if err != nil {
		return 0, err
	}
	namespace, _ := os.Readlink("/proc/self/ns/cgroup") // not available before Linux 4.6
	return m.level(path, id, namespace)
}

// Constants of the kernel: the root of the hierarchy is the first inode of kernfs
// (cgroup_setup_root); the initial cgroup namespace has a fixed number (PROC_CGROUP_INIT_INO).
const (
	rootID         = 1
	firstNamespace = "cgroup:[4026531835]"
)

func (m mounted) level(path string, id uint64, namespace string) (uint32, error) {
	switch {
	case id == rootID:
		return levels(path), nil
	case namespace == firstNamespace: // a part is mounted, and root is its path from the root of the hierarchy
		return levels(m.root) + levels(path), nil
	}
	// A cgroup namespace names its own root cgroup "/", however deep that is.
	return 0, ErrPartialHierarchy
}

func levels(at string) uint32 {
	if at = path.Clean("/" + at); at == "/" {
		return 0
	}
	return uint32(strings.Count(at, "/"))
}
