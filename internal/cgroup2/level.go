package cgroup2

import (
	"errors"
	"os"
	"path"
	"strings"
)

// ErrPart means that levels cannot be told, because what is mounted is only a part of the
// hierarchy, as in a container, and nobody says how deep it is.
var ErrPart = errors.New("the cgroup hierarchy that is mounted here is not the whole one: run headgate outside of the container or with the host's cgroup namespace")

// Level is how many levels the cgroup at path below the mount point is below the root of
// all: the kernel's own number (struct cgroup.level, and of bpf_skb_ancestor_cgroup_id). It
// does not look whether there is such a cgroup.
func Level(path string) (uint32, error) {
	m, err := find()
	if err != nil {
		return 0, err
	}
	id, err := m.id("/")
	if err != nil {
		return 0, err
	}
	namespace, _ := os.Readlink("/proc/self/ns/cgroup") // none before Linux 4.6
	return m.level(path, id, namespace)
}

// The kernel's own: the root of all is the first inode of kernfs (cgroup_setup_root); the
// cgroup namespace that all others come from has a fixed number (PROC_CGROUP_INIT_INO).
const (
	rootID         = 1
	firstNamespace = "cgroup:[4026531835]"
)

func (m mounted) level(path string, id uint64, namespace string) (uint32, error) {
	switch {
	case id == rootID:
		return levels(path), nil
	case namespace == firstNamespace: // a part is mounted, and the root has its true path
		return levels(m.root) + levels(path), nil
	}
	// A namespace calls its own cgroup "/", however deep that is.
	return 0, ErrPart
}

func levels(at string) uint32 {
	if at = path.Clean("/" + at); at == "/" {
		return 0
	}
	return uint32(strings.Count(at, "/"))
}
