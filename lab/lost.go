package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// markPrefix is the prefix of the loopback device's alias in a lab's namespaces; the lab's name
// follows. It distinguishes them from foreign namespaces whose names have the same prefix.
const markPrefix = "headgate lab "

// lost returns labs without a state file: those with namespaces, after /run/headgate was emptied, those
// with a temporary file, whose writer was killed while it wrote the first state file, and those with a
// directory of switches. Only the names of their nodes are known.
func lost() (labs []*state) {
	// Listed before the state files, so that labs that are being created have theirs.
	paths, _ := filepath.Glob(filepath.Join(netnsDir, namespaceName("*", "*")))
	short, _ := filepath.Glob(tmpPath("*"))
	switches, _ := filepath.Glob(switchesDir("*"))
	found := map[string]*state{}
	add := func(name, path string) *state {
		if _, err := os.Stat(statePath(name)); !errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if _, err := os.Stat(path); err != nil {
			return nil // it was taken down, or its file written, meanwhile
		}
		if found[name] == nil {
			found[name] = &state{Name: name, Topology: &Topology{Name: name}}
			labs = append(labs, found[name])
		}
		return found[name]
	}
	for _, path := range paths {
		name, ok := marked(path)
		node, ours := strings.CutPrefix(filepath.Base(path), namespaceName(name, ""))
		if !ok || !ours {
			continue
		}
		if s := add(name, path); s != nil {
			s.Topology.Nodes = append(s.Topology.Nodes, NodeSpec{Name: node})
		}
	}
	for _, path := range short {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "."), ".tmp")
		if labName.MatchString(name) {
			add(name, path)
		}
	}
	for _, path := range switches {
		if name := strings.TrimSuffix(filepath.Base(path), ".ovs"); labName.MatchString(name) {
			add(name, path)
		}
	}
	return labs
}

// marked returns the lab that a namespace's alias names; false also for a namespace that was removed
// meanwhile, or that we may not enter.
func marked(path string) (lab string, ok bool) {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return "", false
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return "", false
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return "", false
	}
	name, ok := strings.CutPrefix(lo.Attrs().Alias, markPrefix)
	return name, ok && labName.MatchString(name)
}

// findState returns the content of a lab's state file, or what is known without it.
func findState(name string) (*state, error) {
	s, err := loadState(name)
	if !errors.Is(err, os.ErrNotExist) {
		return s, err
	}
	for _, l := range lost() {
		if l.Name == name {
			return l, nil
		}
	}
	return nil, err
}
