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

// lost are labs whose namespaces are there and whose file is not, because somebody
// emptied /run/headgate: all that is known of them is their nodes' names.
func lost() (labs []*state) {
	// Before the files, so that those of a lab that is being made are there.
	paths, _ := filepath.Glob(filepath.Join(netnsDir, namespaceName("*", "*")))
	found := map[string]*state{}
	for _, path := range paths {
		name, ok := marked(path)
		if !ok {
			continue
		}
		if _, err := os.Stat(statePath(name)); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			continue // it was taken down meanwhile: names go before the file
		}
		node, ok := strings.CutPrefix(filepath.Base(path), namespaceName(name, ""))
		if !ok {
			continue
		}
		s := found[name]
		if s == nil {
			s = &state{Name: name, Topology: &Topology{Name: name}}
			found[name], labs = s, append(labs, s)
		}
		s.Topology.Nodes = append(s.Topology.Nodes, NodeSpec{Name: node})
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
