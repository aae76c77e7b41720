package lab

import (
	"fmt"
	"slices"
	"strings"
)

// switchProblems reports the problems of the switches. nodes are the names of the nodes.
func (t *Topology) switchProblems(nodes map[string]bool, add adder) {
	if len(t.Switches) > maxSwitches {
		add("switches", "%d switches exceed the maximum of %d", len(t.Switches), maxSwitches)
	}
	names, ids := map[string]bool{}, map[uint64]string{}
	links := map[string]int{}
	for _, l := range t.Links {
		for _, name := range l.Ends {
			links[name]++
		}
	}
	for i, s := range t.Switches {
		at := fmt.Sprintf("switches[%d]", i)
		switch {
		case !nodeName.MatchString(s.Name) || slices.Contains(takenNames, s.Name):
			add(at+".name", "%q is not a valid switch name: use 1 to 11 letters, digits and dashes, a letter first (its device gets its name)", s.Name)
		case slices.Contains(takenSwitchNames, s.Name) || s.Name == switchesName:
			add(at+".name", "%q is a name that the lab's Open vSwitch needs: rename the switch", s.Name)
		case names[s.Name] || nodes[s.Name]:
			add(at+".name", "duplicate name %q of a node or switch: rename one of them", s.Name)
		case links[s.Name] == 0:
			add(at, "switch %q has no link: add one to links, or leave the switch out", s.Name)
		case links[s.Name] > maxPorts:
			add(at, "the %d links of switch %q exceed the maximum of %d", links[s.Name], s.Name, maxPorts)
		}
		names[s.Name] = true
		id := t.datapathID(i)
		if other, ok := ids[id]; ok {
			add(at+".id", "%s is the datapath id of %q, too: write another id", formatID(id), other)
		}
		ids[id] = s.Name
		if s.FailMode != "" && s.FailMode != Secure && s.FailMode != Standalone {
			add(at+".fail_mode", "%q is not a fail mode: write secure or standalone", s.FailMode)
		}
		for n, p := range s.Protocols {
			where := fmt.Sprintf("%s.protocols[%d]", at, n)
			if !slices.Contains(protocols, p) {
				add(where, "%q is not a protocol of Open vSwitch: write some of %s", p, strings.Join(protocols, ", "))
			} else if slices.Contains(s.Protocols[:n], p) {
				add(where, "duplicate protocol %s: remove one", p)
			}
		}
		for n, text := range s.Controllers {
			where := fmt.Sprintf("%s.controllers[%d]", at, n)
			c, err := parseController(text)
			switch {
			case err != nil:
				add(where, "%v", err)
			case slices.Contains(s.Controllers[:n], text):
				add(where, "duplicate controller %s: remove one", text)
			case c.node != "" && !nodes[c.node]:
				add(where, "unknown node %q: add it to nodes, or correct the name", c.node)
			}
		}
	}
	for i, n := range t.Nodes {
		if n.Name == switchesName && len(t.Switches) > 0 {
			add(fmt.Sprintf("nodes[%d].name", i), "%q is the name of the namespace of the lab's switches: rename the node", n.Name)
		}
	}
	t.loopProblems(add)
}

// loopProblems finds switches on a loop of standalone switches that do not prevent a storm by RSTP. A
// loop that contains a secure switch passes what the flows of that switch pass.
func (t *Topology) loopProblems(add adder) {
	standalone := map[string]bool{}
	for _, s := range t.Switches {
		standalone[s.Name] = s.FailMode == Standalone
	}
	for i, s := range t.Switches {
		if s.FailMode != Standalone || s.RSTP {
			continue
		}
		// s is on a loop if two of its links lead to the same part of the network without s.
		parts := newParts()
		for _, l := range t.Links {
			if a, b := l.Ends[0], l.Ends[1]; a != s.Name && b != s.Name && standalone[a] && standalone[b] {
				parts.join(a, b)
			}
		}
		seen := map[string]string{}
		for _, l := range t.Links {
			for e := range 2 {
				peer := l.Ends[1-e]
				if l.Ends[e] != s.Name || peer == s.Name || !standalone[peer] {
					continue
				}
				part := parts.of(peer)
				if other, ok := seen[part]; ok {
					add(fmt.Sprintf("switches[%d]", i), "standalone switch %q is on a loop (its links to %q and %q), in which a broadcast would circulate for ever: write rstp: true at each switch of the loop, or fail_mode: secure, or remove a link", s.Name, other, peer)
					return
				}
				seen[part] = peer
			}
		}
	}
}

// parts is a division of names into parts: disjoint sets (union-find).
type parts map[string]string

func newParts() parts { return parts{} }

// of returns the name that stands for the part of a name.
func (p parts) of(name string) string {
	for p[name] != "" {
		name = p[name]
	}
	return name
}

func (p parts) join(a, b string) {
	if a, b = p.of(a), p.of(b); a != b {
		p[b] = a
	}
}
