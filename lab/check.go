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

// Limits of what is accepted.
const (
	// maxDelay is 10 s: more than any path.
	maxDelay = 10 * time.Second
	// maxLateBound: who accepts more does not measure time.
	maxLateBound = 10 * time.Second
	// maxNodes and maxLinks keep link numbers within 10.0.0.0/8 and a machine's
	// memory.
	maxNodes, maxLinks = 1000, 4000
)

var (
	labName   = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,30}$`)
	nodeName  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]{0,10}$`)
	linkName  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9.-]{0,30}$`)
	sysctlKey = regexp.MustCompile(`^net\.[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)+$`)
	// The words that name something else below /proc/sys/net/ipv4/conf.
	takenNames = []string{"lo", "all", "default"}
)

// Validate checks everything that can be known before the lab is made. The
// error, if any, joins one sentence per mistake and is an ErrConfig.
func (t *Topology) Validate() error {
	var errs []error
	for _, p := range t.problems() {
		errs = append(errs, configErrorf("%s: %s", p.where, p.what))
	}
	return errors.Join(errs...)
}

// problem is a mistake and where it is, in the words of the YAML form:
// "links[2].forward.rate".
type problem struct{ where, what string }

func (t *Topology) problems() (out []problem) {
	var add adder = func(where, format string, a ...any) {
		out = append(out, problem{where, fmt.Sprintf(format, a...)})
	}
	if !labName.MatchString(t.Name) {
		add("name", "%q is not a name for a lab: use 1 to 31 letters, digits and dashes", t.Name)
	}
	if len(t.Nodes) == 0 {
		add("nodes", "there are none: list at least one host")
	}
	if len(t.Nodes) > maxNodes {
		add("nodes", "%d nodes are more than the %d that are accepted", len(t.Nodes), maxNodes)
	}
	if len(t.Links) > maxLinks {
		add("links", "%d links are more than the %d that are accepted", len(t.Links), maxLinks)
	}
	names := map[string]bool{}
	for i, n := range t.Nodes {
		at := fmt.Sprintf("nodes[%d]", i)
		switch {
		case !nodeName.MatchString(n.Name) || slices.Contains(takenNames, n.Name):
			add(at+".name", "%q is not a name for a node: use 1 to 11 letters, digits and dashes, a letter first (the device towards it gets its name)", n.Name)
		case names[n.Name]:
			add(at+".name", "there are two nodes %q: give one another name", n.Name)
		}
		names[n.Name] = true
		for _, key := range slices.Sorted(maps.Keys(n.Sysctl)) {
			if !sysctlKey.MatchString(key) {
				add(at+".sysctl."+key, "%q is not a network setting: write for example net.ipv4.tcp_ecn", key)
			} else if !kernelHasSysctl(key) {
				add(at+".sysctl."+key, "this kernel has no setting %s: correct the name, or leave it out", key)
			}
		}
	}
	t.linkProblems(names, add)
	t.addressProblems(add)
	flows := map[string]bool{}
	for i, f := range t.Flows {
		at := fmt.Sprintf("flows[%d]", i)
		for _, end := range []struct{ key, name string }{{"from", f.From}, {"to", f.To}} {
			if !names[end.name] {
				add(at+"."+end.key, "there is no node %q: add it to nodes, or correct the name", end.name)
			}
		}
		if flows[f.Name] {
			add(at+".name", "there are two flows %q: give one another name", f.Name)
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
	t.programProblems(names, add)
	t.timelineProblems(add)
	// What cannot be made is only worth saying of links that make sense.
	if len(out) == 0 {
		_, out = t.backends()
		t.reachProblems(add)
	}
	return out
}

// adder notes a mistake.
type adder func(where, format string, a ...any)

func (t *Topology) linkProblems(nodes map[string]bool, add adder) {
	names := map[string]bool{}
	for i, name := range t.LinkNames() {
		l, at := t.Links[i], fmt.Sprintf("links[%d]", i)
		if l.Name != "" && !linkName.MatchString(l.Name) {
			add(at+".name", "%q is not a name for a link: use 1 to 31 letters, digits, dots and dashes, a letter first", l.Name)
		}
		if names[name] {
			add(at+".name", "there are two links %q: give one another name", name)
		}
		names[name] = true
		for _, end := range l.Ends {
			if !nodes[end] {
				add(at+".ends", "there is no node %q: add it to nodes, or correct the name", end)
			}
		}
		if l.Ends[0] == l.Ends[1] {
			add(at+".ends", "both ends are %q: a link joins two nodes, so name another one", l.Ends[0])
		}
		if l.LateBound < 0 || l.LateBound > maxLateBound {
			add(at+".late_bound", "%v is not between 0 and %v", l.LateBound, maxLateBound)
		}
		pathProblems(at, l.Forward, l.Back, add)
	}
}

// pathProblems tells the mistakes of a link's two directions, and what both have
// alike only once.
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
