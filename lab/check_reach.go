package lab

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"headgate.dev/headgate/lab/traffic"
)

// reachProblems finds flows whose packets cannot reach their destination, or that this kernel cannot
// send.
func (t *Topology) reachProblems(add adder) {
	router := map[string]bool{} // and switches
	for _, n := range t.Nodes {
		router[n.Name] = n.Router
	}
	for _, s := range t.Switches {
		router[s.Name] = true
	}
	for i, f := range t.Flows {
		at := fmt.Sprintf("flows[%d]", i)
		if err := traffic.CheckCongestion(f.Congestion); err != nil {
			add(at+".congestion", "%s", err)
		}
		linked := true
		for _, end := range []struct{ key, name string }{{"from", f.From}, {"to", f.To}} {
			if !slices.ContainsFunc(t.Links, func(l LinkSpec) bool { return slices.Contains(l.Ends[:], end.name) }) {
				linked = false
				add(at+"."+end.key, "node %q has no link and therefore no address: add a link to it", end.name)
			}
		}
		if !linked || f.From == f.To || t.path(f.From, f.To, func(n string) bool { return router[n] }) != nil {
			continue
		}
		path := t.path(f.From, f.To, func(string) bool { return true })
		if path == nil {
			add(at+".to", "there is no path from %q to %q: add a link that connects their networks", f.From, f.To)
			continue
		}
		for _, n := range path[1 : len(path)-1] {
			if !router[n] {
				add(at+".to", "%q cannot reach %q: node %q between them does not forward packets; write router: true for it", f.From, f.To, n)
				break
			}
		}
	}
}

// path returns the nodes of a path with the fewest links, or nil without a path. pass reports whether
// a node between the ends may be on it.
func (t *Topology) path(from, to string, passes func(node string) bool) []string {
	before := map[string]string{from: from}
	queue := []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if at == to {
			path := []string{to}
			for at != from {
				at = before[at]
				path = append(path, at)
			}
			slices.Reverse(path)
			return path
		}
		if at != from && !passes(at) {
			continue
		}
		for _, l := range t.Links {
			for end := range 2 {
				if peer := l.Ends[1-end]; l.Ends[end] == at && before[peer] == "" {
					before[peer] = at
					queue = append(queue, peer)
				}
			}
		}
	}
	return nil
}

// kernelHasSysctl reports whether the kernel has a sysctl, as far as this namespace shows: sysctls of
// a device, or of a protocol's neighbours, may exist only in others.
func kernelHasSysctl(key string) bool {
	if strings.Contains(key, ".conf.") || strings.Contains(key, ".neigh.") {
		return true
	}
	_, err := os.Stat(sysctlPath(key))
	return err == nil
}
