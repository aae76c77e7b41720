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

// markPrefix begins the alias of the loopback device in a lab's namespaces; the
// lab's name follows. It tells them from namespaces of others whose name begins
// like ours.
const markPrefix = "headgate lab "

// lost are labs without a file of which something is there: namespaces, because
// somebody emptied /run/headgate, or a file that was cut short, because its writer
// was killed as it began. All that is known of them is their nodes' names.
func lost() (labs []*state) {
	// Before the labs' files, so that those of a lab that is being made are there.
	paths, _ := filepath.Glob(filepath.Join(netnsDir, namespaceName("*", "*")))
	short, _ := filepath.Glob(tmpPath("*"))
	found := map[string]*state{}
	add := func(name, path string) *state {
		if _, err := os.Stat(statePath(name)); !errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if _, err := os.Stat(path); err != nil {
			return nil // it was taken down, or written, meanwhile
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
	return labs
}

// marked is the lab that a namespace says it belongs to; false also for what is
// gone meanwhile, or that we may not enter.
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

// findState is a lab's file, or what can be known without one.
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
