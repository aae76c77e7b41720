package lab

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"headgate/lab/traffic"
	"headgate/unit"
)

// Topology is a network as the user asks for it.
type Topology struct {
	// Name is part of every namespace's name: letters, digits and dashes.
	Name  string
	Nodes []NodeSpec
	Links []LinkSpec
	// Flows and Duration are for Run; a lab can be made without them. A flow's
	// ends are names of nodes.
	Flows    []traffic.Flow `json:",omitempty"`
	Duration time.Duration  `json:",omitempty"`
}

// NodeSpec is a host or a router.
type NodeSpec struct {
	// Name is at most 11 characters, because the device that leads to a node is
	// called by its name.
	Name string
	// Router forwards packets; a host does not.
	Router bool `json:",omitempty"`
	// Sysctl are settings below /proc/sys of the node's namespace, such as
	// "net.ipv4.tcp_ecn": "1".
	Sysctl map[string]string `json:",omitempty"`
}

// LinkSpec joins two nodes.
type LinkSpec struct {
	Ends [2]string
	// Forward is the direction from Ends[0] to Ends[1], Back the other.
	Forward, Back Path
	// NoOffload turns TSO, GSO, GRO and transmit checksums off at both ends. They
	// are on otherwise, as veth has them, and super-packets cross the link whole.
	NoOffload bool `json:",omitempty"`
}

// Path is one direction of a link.
type Path struct {
	// Rate limits layer-2 bits per second; 0 is as fast as the machine is.
	Rate unit.Rate `json:",omitempty"`
	// Queue bounds the queue before a limited rate; 0 is DefaultQueue of time.
	Queue Queue `json:",omitzero"`
	// Delay is how long each frame is held, after the rate.
	Delay time.Duration `json:",omitempty"`
}

// Queue is a bound in bytes or in time at the path's rate; one of them.
type Queue struct {
	Bytes unit.Bytes    `json:",omitempty"`
	Time  time.Duration `json:",omitempty"`
}

// DefaultQueue is the queue of a limited path that names none.
const DefaultQueue = 50 * time.Millisecond

// minQueue holds one super-packet with its headers: a queue that cannot take
// one drops all of a TCP flow's.
const minQueue = 70_000

// queueBytes is the bound in layer-2 bytes.
func (p Path) queueBytes() uint64 {
	if p.Queue.Bytes > 0 {
		return uint64(p.Queue.Bytes)
	}
	t := p.Queue.Time
	if t == 0 {
		t = DefaultQueue
	}
	return max(uint64(float64(p.Rate)/8*t.Seconds()), minQueue)
}

// Limits of what is accepted.
const (
	// maxDelay is 10 s: more than any path, and the emulator's ring must hold it.
	maxDelay = 10 * time.Second
	// minRate is one frame in 12 s.
	minRate = unit.Kbit
	// maxNodes and maxLinks keep link numbers within 10.0.0.0/8 and a machine's
	// memory.
	maxNodes, maxLinks = 1000, 4000
)

var (
	labName   = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,30}$`)
	nodeName  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]{0,10}$`)
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
	add := func(where, format string, a ...any) {
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
			add(at+".name", "there are two nodes %q", n.Name)
		}
		names[n.Name] = true
		for _, key := range slices.Sorted(maps.Keys(n.Sysctl)) {
			if !sysctlKey.MatchString(key) {
				add(at+".sysctl."+key, "%q is not a network setting: write for example net.ipv4.tcp_ecn", key)
			}
		}
	}
	for i, l := range t.Links {
		at := fmt.Sprintf("links[%d]", i)
		for _, end := range l.Ends {
			if !names[end] {
				add(at+".ends", "there is no node %q: add it to nodes, or correct the name", end)
			}
		}
		if l.Ends[0] == l.Ends[1] {
			add(at+".ends", "both ends are %q: a link joins two nodes", l.Ends[0])
		}
		for dir, p := range [2]Path{l.Forward, l.Back} {
			where := at + [2]string{".forward", ".back"}[dir]
			if p.Rate != 0 && (p.Rate < minRate || p.Rate > unit.MaxRate) {
				add(where+".rate", "%v is not between %v and %v: leave it out for an unlimited link", p.Rate, minRate, unit.MaxRate)
			}
			if p.Delay < 0 || p.Delay > maxDelay {
				add(where+".delay", "%v is not between 0 and %v", p.Delay, maxDelay)
			}
			if p.Queue != (Queue{}) && p.Rate == 0 {
				add(where+".queue", "a queue needs a rate: give the path a rate, or leave the queue out")
			}
			if p.Queue.Bytes > 0 && p.Queue.Time > 0 {
				add(where+".queue", "it is given in bytes and in time: choose one")
			}
			if p.Queue.Time < 0 || p.Queue.Time > maxDelay {
				add(where+".queue", "%v is not between 0 and %v", p.Queue.Time, maxDelay)
			}
			if p.Rate > 0 && p.queueBytes() > 1<<31 {
				add(where+".queue", "%v bytes are more than 2GiB", p.queueBytes())
			}
			if p.Queue.Bytes > 0 && p.Queue.Bytes < 1600 {
				add(where+".queue", "%v does not hold one frame: use at least 1600B", p.Queue.Bytes)
			}
		}
	}
	flows := map[string]bool{}
	for i, f := range t.Flows {
		at := fmt.Sprintf("flows[%d]", i)
		for _, end := range []struct{ key, name string }{{"from", f.From}, {"to", f.To}} {
			if !names[end.name] {
				add(at+"."+end.key, "there is no node %q: add it to nodes, or correct the name", end.name)
			}
		}
		if flows[f.Name] {
			add(at+".name", "there are two flows %q", f.Name)
		}
		flows[f.Name] = true
		if err := f.Validate(); err != nil {
			add(at, "%v", err)
		}
	}
	return out
}

// RunTime is the topology's Duration, or 5 s after the last change of an offered
// rate.
func (t *Topology) RunTime() time.Duration {
	if t.Duration > 0 {
		return t.Duration
	}
	var last time.Duration
	for _, f := range t.Flows {
		for _, s := range f.Schedule {
			last = max(last, s.At)
		}
	}
	return last + 5*time.Second
}
