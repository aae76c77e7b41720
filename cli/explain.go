package cli

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"slices"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

func explainCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain --packet PACKET --dev DEV",
		Short: "Show which rule, group and class a packet gets",
		Long: `Explain evaluates the rules and assignments in force on a device for a packet. It
prints the rule or assignment that matches, the group, and the kernel's class. With -f it
also prints the line of the rule, and works on a device that has no groups yet.

A packet is a protocol, a source and a destination (with ports for tcp, udp and
sctp), followed by other fields that rules can match: dscp, vlan, pcp, mark, smac, cgroup
and (ICMP) type, each with a value, and the words ack (a TCP segment without data) and
fragment (a fragment other than the first). Packets other than IP have a name: arp, lldp,
stp, lacp, eapol. Whether a packet is control traffic also depends on ttl (or hop limit)
and length (of the IP packet). Their defaults depend on the protocol.

Source and destination are the packet's own: in a packet that the device receives,
the source is the remote end.

With --server, explain uses the desired state of a host of a service: the rules, and the
connections that were assigned through the service. Classes are known only on the host.`,
		Example: `  headgate explain --packet 'tcp 10.0.0.1:443 10.0.0.2:55000' --dev eth0
  headgate explain --packet 'udp [fd00::1]:53 [fd00::2]:999 dscp ef mark 7' --dev eth0 -f eth0.yaml
  headgate explain --packet 'udp 10.0.0.1:5060 10.0.0.2:5060 vlan 100 pcp 5 smac 02:00:5e:10:00:01' --dev eth0
  headgate explain --packet 'tcp 10.0.0.1:40000 10.0.0.2:443 cgroup /system.slice/nginx.service' --dev eth0 --direction out
  headgate explain --packet 'tcp 10.0.0.1:443 10.0.0.2:55000' --dev eth0 --server default --host web1`,
		Args: cobra.NoArgs,
	}
	text := c.Flags().String("packet", "", "the packet, such as 'tcp 10.0.0.1:443 10.0.0.2:55000'")
	dev := a.devFlag(c, "", "the device")
	direction := c.Flags().String("direction", "both", "out, in or both")
	completeFlag(c, "direction", oneOf("out", "in", "both"))
	files, output := fileFlag(c), outputFlag(c)
	requireFlags(c, "packet", "dev")
	at := serverFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		packet, err := group.ParsePacket(*text)
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		if *direction != "out" && *direction != "in" && *direction != "both" {
			return usageError{fmt.Errorf("%q is not a direction: write out, in or both", *direction), c.CommandPath()}
		}
		var e explainer
		if at.isSet() {
			if err := at.rejectFlags(c, "file"); err != nil {
				return err
			}
			e, err = a.explainRemote(c.Context(), at, *dev)
		} else {
			*dev = a.dev(*dev)
			e, err = a.explainer(c, *dev, *files)
		}
		if err != nil {
			return err
		}
		answer := explanation{Packet: packet.String(), Dev: *dev, InForce: e.state != nil}
		for _, d := range []string{"out", "in"} {
			if *direction == "both" || *direction == d {
				answer.Directions = append(answer.Directions, e.explain(d, packet))
			}
		}
		return a.print(*output, answer, answer.table)
	}
	return c
}

type explanation struct {
	Packet     string                 `json:"packet"`
	Dev        string                 `json:"dev"`
	InForce    bool                   `json:"in_force"`
	Directions []directionExplanation `json:"directions"`
}

type directionExplanation struct {
	Direction string `json:"direction"`
	Limited   bool   `json:"limited"`
	// Reason is "rule", "default", "control", or "assigned" at run time.
	Reason   string `json:"reason,omitempty"`
	Rule     *int   `json:"rule,omitempty"`
	Selector string `json:"selector,omitempty"`
	Place    string `json:"place,omitempty"` // "eth0.yaml:9: out.groups[0].match[1]"
	Group    string `json:"group,omitempty"`
	Class    string `json:"class,omitempty"`
	// Beyond is the class of control traffic that exceeds the group's budget for control traffic.
	Beyond string `json:"class_beyond_budget,omitempty"`
	// Client is the address or prefix of the packet's client in a group with each:, and Ceiling is
	// the client's ceiling.
	Client  string    `json:"client,omitempty"`
	Ceiling unit.Rate `json:"client_ceiling,omitempty"`
	// Note is a warning that the packet may look different at this point.
	Note string `json:"note,omitempty"`
}

// explainer has the actual state of a device, its configuration file, or both.
type explainer struct {
	state    *shaper.State
	file     *config.Interface
	assigned []shaper.Assignment
	clients  []shaper.Client
}

func (a *app) explainer(c *cobra.Command, dev string, files []string) (e explainer, err error) {
	if len(files) > 0 {
		set, err := a.loadInterfaces(c, files, false)
		if err == nil {
			set, err = a.named(set)
		}
		if err != nil {
			return e, err
		}
		i, ok := set.For(dev)
		if !ok {
			return e, fmt.Errorf("%s is not in the configuration", dev)
		}
		e.file = &i
		set.Interfaces = []config.Interface{i}
		a.warnPlacement(set, true)
	} else {
		a.warnBypassed(dev)
	}
	state, err := a.observe(dev)
	switch {
	case err == nil:
		e.state = &state
		e.assigned, _ = a.assignments(state.Engine, dev) // if the engine cannot list assignments, the rules decide
		e.clients, _ = a.clients(state.Engine, dev)      // if this fails, the client's class is left out
	case e.file == nil:
		return e, err
	case errors.Is(err, shaper.ErrNotShaped):
		a.note("headgate: %v: the result is from the file", err)
	default:
		a.note("headgate: %v: the result is from the file", err)
	}
	if e.state != nil && e.file != nil && !e.sameRules() {
		a.note("headgate: the rules in the file differ from those in force on %s, so lines are left out: see headgate plan", dev)
		e.file = nil
	}
	return e, nil
}

// sameRules reports whether the rules in the file are those in force.
func (e explainer) sameRules() bool {
	same := func(a, b *group.Tree) bool {
		return a == nil && b == nil || a != nil && b != nil && len(a.Rules) == len(b.Rules) &&
			(len(a.Rules) == 0 || reflect.DeepEqual(a.Rules, b.Rules))
	}
	return same(e.state.Plan.Out, e.file.OutTree) && same(e.state.Plan.In, e.file.InTree)
}

// ingress returns the direction of the packets that the device receives.
func (e explainer) ingress() string {
	perspective := group.Host
	if e.state != nil {
		perspective = e.state.Plan.Perspective
	} else if e.file != nil {
		perspective = e.file.Perspective
	}
	if perspective == group.Guest {
		return "out"
	}
	return "in"
}

// explain evaluates the rules and assignments of one direction for a packet.
func (e explainer) explain(direction string, p group.Packet) directionExplanation {
	var tree *group.Tree
	var counters *shaper.DirectionState
	var places []string
	if e.file != nil {
		tree, places = e.file.OutTree, e.file.OutRules
		if direction == "in" {
			tree, places = e.file.InTree, e.file.InRules
		}
	}
	if e.state != nil {
		tree, counters = e.state.Plan.Out, e.state.Out
		if direction == "in" {
			tree, counters = e.state.Plan.In, e.state.In
		}
	}
	x := directionExplanation{Direction: direction, Limited: tree != nil}
	if tree == nil {
		return x
	}
	rule, leaf := tree.Classify(p)
	x.Reason = "default"
	if to, ok := e.assignment(tree, p); ok {
		x.Reason, rule, leaf = "assigned", -1, to
	}
	x.Group = tree.Nodes[leaf].Path
	if rule >= 0 {
		x.Reason, x.Rule, x.Selector = "rule", &rule, tree.Rules[rule].Selector.String()
		if rule < len(places) {
			file, line, _ := e.file.Where(places[rule])
			x.Place = fmt.Sprintf("%s:%d: %s", file, line, places[rule])
		}
	}
	if p.Mark != 0 && direction == e.ingress() && slices.ContainsFunc(tree.Rules[:min(rule+1, len(tree.Rules))], func(r group.Rule) bool { return r.Selector.MatchesOnMark() }) {
		x.Note = "received packets have no mark at this point, unless one was set before they reached the device: the firewall sets marks later"
	}
	if counters != nil && leaf < len(counters.Groups) {
		x.Class = counters.Groups[leaf].Class
	}
	if n := tree.Nodes[leaf]; !n.Clients.IsZero() {
		e.client(&x, n, p)
	}
	if p.Control() {
		x.Reason = "control"
		if counters != nil {
			x.Beyond, x.Class = x.Class, counters.Control.Class
		}
	}
	return x
}

// client sets the packet's client, and the client's class if the client has one now.
func (e explainer) client(x *directionExplanation, n group.Node, p group.Packet) {
	of := shaper.Client{Client: n.Clients.Each.Client(p)}
	x.Client, x.Class, x.Ceiling = of.Name(), "", n.Clients.Ceiling
	for _, c := range e.clients {
		if c.Direction == x.Direction && c.Group == n.Path && c.Client == of.Client {
			x.Class = c.Class
		}
	}
}

// assignment returns the leaf group to which the packet's connection is assigned.
// ok is false without an assignment, or if the direction has no such group.
func (e explainer) assignment(tree *group.Tree, p group.Packet) (leaf int, ok bool) {
	if !p.HasPorts() {
		return 0, false
	}
	src, dst := netip.AddrPortFrom(p.Src, p.SPort), netip.AddrPortFrom(p.Dst, p.DPort)
	forth, back := shaper.Conn{Proto: p.Proto, A: src, B: dst}, shaper.Conn{Proto: p.Proto, A: dst, B: src}
	i := slices.IndexFunc(e.assigned, func(a shaper.Assignment) bool { return a.Conn == forth || a.Conn == back })
	if i < 0 {
		return 0, false
	}
	leaf = slices.IndexFunc(tree.Nodes, func(n group.Node) bool { return n.Leaf && n.Path == e.assigned[i].Group })
	return leaf, leaf >= 0
}

func (e explanation) table(w io.Writer) error {
	fmt.Fprintf(w, "%s on %s\n", e.Packet, e.Dev)
	for _, d := range e.Directions {
		class := ""
		if d.Class != "" {
			class = ", class " + d.Class
		}
		switch d.Reason {
		case "":
			fmt.Fprintf(w, "  %s: not limited\n", d.Direction)
		case "control":
			fmt.Fprintf(w, "  %s: control traffic of group %s: sent first within its budget%s\n", d.Direction, d.Group, class)
			if d.Beyond != "" {
				fmt.Fprintf(w, "       above the budget with the group's other packets, class %s\n", d.Beyond)
			}
		case "assigned":
			fmt.Fprintf(w, "  %s: assigned at run time: group %s%s\n", d.Direction, d.Group, class)
		case "default":
			fmt.Fprintf(w, "  %s: no rule matches: the default group %s%s\n", d.Direction, d.Group, class)
		default:
			fmt.Fprintf(w, "  %s: rule %d (%s): group %s%s\n", d.Direction, *d.Rule, d.Selector, d.Group, class)
			if d.Place != "" {
				fmt.Fprintf(w, "       written in %s\n", d.Place)
			}
		}
		if d.Client != "" {
			fmt.Fprintf(w, "       client %s: a group of its own, up to %v\n", d.Client, d.Ceiling)
		}
		if d.Note != "" {
			fmt.Fprintf(w, "       note: %s\n", d.Note)
		}
	}
	return nil
}
