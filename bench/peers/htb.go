package peers

import (
	"fmt"
	"strings"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// HTB is an HTB tree as an experienced administrator configures it by hand: the rate of a class is its
// guarantee, with a quantum in proportion to it in units of a frame. Groups are matched by one
// destination port each.
type HTB struct {
	// Leaf is the limit of each leaf's queue in bytes; 0 is the kernel's default, which is in packets.
	Leaf unit.Bytes
	// Cut makes each leaf a TBF with the limit Leaf and a bucket of one frame, which therefore
	// segments every super-packet.
	Cut bool
}

// frame is a full Ethernet frame.
const frame = 1514

// Apply creates the tree.
func (h HTB) Apply(p shaper.Plan) error {
	return each(p, func(dev string, in bool) error {
		tree := p.Out
		if in {
			tree = p.In
		}
		lines, err := h.Commands(dev, tree)
		if err != nil {
			return err
		}
		return tc(lines...)
	})
}

// Clear removes it.
func (h HTB) Clear(dev string) error { return clear(dev) }

// minor returns the minor number of a node's class; 1:1 is the limit.
func minor(node int) int { return 0x10 + node }

// Commands returns the tc commands for a tree, without the word tc.
func (h HTB) Commands(dev string, t *group.Tree) ([]string, error) {
	lines := []string{
		fmt.Sprintf("qdisc add dev %s root handle 1: htb default %x", dev, minor(t.Default)),
		fmt.Sprintf("class add dev %s parent 1: classid 1:1 htb rate %dbit ceil %[2]dbit", dev, t.Limit),
	}
	lines = append(lines, h.Classes("add", dev, t)...)
	for i, n := range t.Nodes {
		if n.Leaf && h.Cut {
			lines = append(lines, fmt.Sprintf("qdisc add dev %s parent 1:%x tbf rate 10gbit burst 1600 limit %d", dev, minor(i), h.Leaf))
		} else if n.Leaf && h.Leaf > 0 {
			lines = append(lines, fmt.Sprintf("qdisc add dev %s parent 1:%x bfifo limit %d", dev, minor(i), h.Leaf))
		}
	}
	filters, err := filters(dev, t)
	return append(lines, filters...), err
}

// Classes returns the commands that add or change the classes of the groups.
func (h HTB) Classes(verb, dev string, t *group.Tree) (lines []string) {
	smallest := t.Limit
	for _, n := range t.Nodes {
		if n.Leaf {
			smallest = min(smallest, t.Weight(n))
		}
	}
	for i, n := range t.Nodes {
		parent := 1
		if n.Parent >= 0 {
			parent = minor(n.Parent)
		}
		// The largest quantum that tc accepts without a warning is 200,000.
		quantum := min(frame*uint64(t.Weight(n))/uint64(smallest), 200_000)
		lines = append(lines, fmt.Sprintf("class %s dev %s parent 1:%x classid 1:%x htb rate %dbit ceil %dbit quantum %d",
			verb, dev, parent, minor(i), max(n.Guarantee, 8*unit.Kbit), n.Ceiling, quantum))
	}
	return lines
}

// filters assigns packets to classes by destination port, IPv4 and IPv6.
func filters(dev string, t *group.Tree) (lines []string, err error) {
	for _, r := range t.Rules {
		s := r.Selector
		ports := s.DPort
		s.DPort = nil
		if !s.IsZero() || len(ports) == 0 {
			return nil, fmt.Errorf("HTB by hand: the rule %q: %w", strings.TrimSpace(r.Selector.String()), ErrUnsupported)
		}
		for _, port := range ports {
			if port.First != port.Last {
				return nil, fmt.Errorf("HTB by hand: the port range %v: %w", port, ErrUnsupported)
			}
			lines = append(lines,
				fmt.Sprintf("filter add dev %s parent 1: protocol ip prio 1 u32 match ip dport %d 0xffff flowid 1:%x", dev, port.First, minor(r.Node)),
				fmt.Sprintf("filter add dev %s parent 1: protocol ipv6 prio 2 u32 match ip6 dport %d 0xffff flowid 1:%x", dev, port.First, minor(r.Node)),
			)
		}
	}
	return lines, nil
}

// Change changes the classes that Apply created to those of p.
func (h HTB) Change(p shaper.Plan) error {
	var lines []string
	if p.Out != nil {
		lines = h.Classes("change", p.Dev, p.Out)
	}
	if p.In != nil {
		lines = append(lines, h.Classes("change", ifb, p.In)...)
	}
	return tc(lines...)
}
