package lab

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/lab/traffic"
)

// The limits of accepted values.
const (
	// maxDelay of 10 s exceeds the delay of any path.
	maxDelay = 10 * time.Second
	// maxLateBound: a lab with a higher bound would not measure times.
	maxLateBound = 10 * time.Second
	// maxNodes and maxLinks keep link numbers within 10.0.0.0/8 and the lab within the memory of a
	// machine.
	maxNodes, maxLinks = 1000, 4000
)

var (
	labName   = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,30}$`)
	nodeName  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]{0,10}$`)
	linkName  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9.-]{0,30}$`)
	sysctlKey = regexp.MustCompile(`^net\.[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)+$`)
	// Names below /proc/sys/net/ipv4/conf that are not devices.
	takenNames = []string{"lo", "all", "default"}
)

// Validate checks everything that can be checked before the lab is created. The error joins one
// sentence for each problem and is an ErrConfig.
func (t *Topology) Validate() error {
	var errs []error
	for _, p := range t.problems() {
		errs = append(errs, configErrorf("%s: %s", p.where, p.what))
	}
	return errors.Join(errs...)
}

// problem is an error in a topology and its place, in the notation of the YAML form:
// "links[2].forward.rate".
type problem struct{ where, what string }

func (t *Topology) problems() (out []problem) {
	var add adder = func(where, format string, a ...any) {
		out = append(out, problem{where, fmt.Sprintf(format, a...)})
	}
	if !labName.MatchString(t.Name) {
		add("name", "%q is not a valid lab name: use 1 to 31 letters, digits and dashes", t.Name)
	}
	if len(t.Nodes) == 0 {
		add("nodes", "no nodes: list at least one host")
	}
	if len(t.Nodes) > maxNodes {
		add("nodes", "%d nodes exceed the maximum of %d", len(t.Nodes), maxNodes)
	}
	if len(t.Links) > maxLinks {
		add("links", "%d links exceed the maximum of %d", len(t.Links), maxLinks)
	}
	names := map[string]bool{}
	for i, n := range t.Nodes {
		at := fmt.Sprintf("nodes[%d]", i)
		switch {
		case !nodeName.MatchString(n.Name) || slices.Contains(takenNames, n.Name):
			add(at+".name", "%q is not a valid node name: use 1 to 11 letters, digits and dashes, a letter first (the device towards it gets its name)", n.Name)
		case names[n.Name]:
			add(at+".name", "duplicate node name %q: rename one of them", n.Name)
		}
		names[n.Name] = true
		for _, key := range slices.Sorted(maps.Keys(n.Sysctl)) {
			if !sysctlKey.MatchString(key) {
				add(at+".sysctl."+key, "%q is not a network sysctl: write for example net.ipv4.tcp_ecn", key)
			} else if !kernelHasSysctl(key) {
				add(at+".sysctl."+key, "this kernel has no sysctl %s: correct the name, or leave it out", key)
			}
		}
	}
	ends := maps.Clone(names) // of links
	for _, s := range t.Switches {
		ends[s.Name] = true
	}
	t.switchProblems(names, add)
	t.linkProblems(ends, add)
	t.addressProblems(add)
	flows := map[string]bool{}
	for i, f := range t.Flows {
		at := fmt.Sprintf("flows[%d]", i)
		for _, end := range []struct{ key, name string }{{"from", f.From}, {"to", f.To}} {
			if ends[end.name] && !names[end.name] {
				add(at+"."+end.key, "%q is a switch: write the name of a node", end.name)
			} else if !names[end.name] {
				add(at+"."+end.key, "unknown node %q: add it to nodes, or correct the name", end.name)
			}
		}
		if flows[f.Name] {
			add(at+".name", "duplicate flow name %q: rename one of them", f.Name)
		}
		flows[f.Name] = true
		if err := f.Validate(); err != nil {
			where, what := at, err.Error()
			if m := (*traffic.Mistake)(nil); errors.As(err, &m) {
				where, what = strings.TrimSuffix(at+"."+m.Key, "."), m.What
			}
			add(where, "%s", what)
		}
		if t.Duration > 0 && f.Start >= t.Duration {
			add(at+".start", "%v is not before the end of the run, at %v: make duration longer, or leave the flow out", f.Start, t.Duration)
		}
	}
	t.programProblems(ends, add)
	t.timelineProblems(add)
	// Backends are checked only for links without other problems.
	if len(out) == 0 {
		_, out = t.backends()
		t.reachProblems(add)
	}
	return out
}

// adder adds a problem.
type adder func(where, format string, a ...any)

func (t *Topology) linkProblems(ends map[string]bool, add adder) {
	names := map[string]bool{}
	for i, name := range t.LinkNames() {
		l, at := t.Links[i], fmt.Sprintf("links[%d]", i)
		if l.Name != "" && !linkName.MatchString(l.Name) {
			add(at+".name", "%q is not a valid link name: use 1 to 31 letters, digits, dots and dashes, a letter first", l.Name)
		}
		if names[name] {
			add(at+".name", "duplicate link name %q: rename one of them", name)
		}
		names[name] = true
		for _, end := range l.Ends {
			if !ends[end] {
				add(at+".ends", "unknown node %q: add it to nodes or switches, or correct the name", end)
			}
		}
		if l.Ends[0] == l.Ends[1] {
			add(at+".ends", "both ends are %q: a link connects two different nodes or switches", l.Ends[0])
		}
		if l.LateBound < 0 || l.LateBound > maxLateBound {
			add(at+".late_bound", "%v is not between 0 and %v", l.LateBound, maxLateBound)
		}
		pathProblems(at, l.Forward, l.Back, add)
	}
}

// pathProblems reports the problems of a link's two directions. A problem of both directions is
// reported once.
func pathProblems(at string, forward, back Path, add adder) {
	f, b := forward.Problems(), back.Problems()
	for _, p := range f {
		if slices.Contains(b, p) {
			add(at+"."+p.Key, "%s", p.What)
		} else {
			add(at+".forward."+p.Key, "%s", p.What)
		}
	}
	for _, p := range b {
		if !slices.Contains(f, p) {
			add(at+".back."+p.Key, "%s", p.What)
		}
	}
}
