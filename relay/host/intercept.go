package host

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/relay"
)

// What the kernel has of a relay agent that takes connections transparently. Marks use bits that neither Kubernetes
// (0x4000, 0x8000) nor Tailscale (0xff0000) uses.
const (
	// table is the name of the agent's nftables table.
	table = "headgate_relay"
	// takenMark marks packets for this host's own sockets whatever their addresses, and ownMark those of the agent,
	// which are not taken.
	takenMark, ownMark, markMask = 0x1000000, 0x2000000, 0x3000000
	// routeTable delivers packets with takenMark on this host, by a rule of routePriority.
	routeTable, routePriority = 8424, 8424
)

// interception is which connections are taken.
type interception struct {
	// port is that of the transparent listener.
	port uint16
	// rules are those of the policy, each with what it takes now.
	rules []takeRule
	// exit is true if the agent connects to destinations with the client's address.
	exit bool
}

// takeRule is a rule, and what it takes now.
type takeRule struct {
	relay.Rule
	// destinations are those of the exits that have a stream.
	destinations []netip.Prefix
	// foreign leaves out this host's own addresses.
	foreign bool
	// cgroup is that of the rule, nil if the rule has none or it does not exist.
	cgroup *cgroup
}

// newConnection matches the first packet of a connection.
const newConnection = "tcp flags & (fin | syn | rst | ack) == syn"

// ownTimeout is how long the table keeps the addresses of a connection of this host after its last packet, and ownSize
// is of how many connections. The listener's keepalives make each connection send a packet in 15 s.
const ownTimeout, ownSize = "10m", 262144

// families are those of addresses, by nftables' names.
var families = []struct {
	word, protocol, own string // own is the set of this host's connections that were taken
	four                bool
}{{"ip", "ipv4", "own4", true}, {"ip6", "ipv6", "own6", false}}

// ruleset returns the agent's nftables table. Loading it replaces the rules of the former one at once, and keeps its sets.
func (i interception) ruleset() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "\t\t"+format+"\n", args...) }
	mark := fmt.Sprintf("meta mark set meta mark & %#x | %#x", ^uint32(markMask), takenMark)
	of := fmt.Sprintf("meta mark & %#x ", markMask)
	fmt.Fprintf(&b, "add table inet %[1]s\nflush table inet %[1]s\ntable inet %[1]s {\n", table)
	if len(i.rules) > 0 {
		for _, f := range families {
			fmt.Fprintf(&b, "\tset %s {\n\t\ttype %s_addr . inet_service . %[2]s_addr . inet_service\n\t\tsize %d\n\t\tflags dynamic,timeout\n\t\ttimeout %s\n\t}\n", f.own, f.protocol, ownSize, ownTimeout)
		}
	}
	fmt.Fprintf(&b, "\tchain prerouting {\n\t\ttype filter hook prerouting priority mangle; policy accept;\n")
	for _, f := range families {
		// Later packets are those of a socket, below, or of a connection that goes direct and must stay so. tproxy ends
		// the rule if nothing listens: the connections of an agent that was killed go direct. It also finds the listener
		// where the addresses are in TIME_WAIT.
		to := fmt.Sprintf("tproxy %s to :%d", f.word, i.port)
		own := false
		for _, r := range i.rules {
			match, ok := r.match(f.word, f.four)
			if own = own || ok; ok && r.Cgroup == "" {
				line("%s!= %#x %s%s %s %s accept", of, ownMark, match, r.begins(), to, mark)
			}
		}
		if own {
			line("iif lo %s== %#x meta nfproto %s %s %s accept", of, takenMark, f.protocol, newConnection, to)
		}
	}
	// Connections of this agent, also those of a former process with other rules.
	if i.exit || len(i.rules) > 0 {
		line("meta l4proto tcp socket transparent 1 %s accept", mark)
	}
	fmt.Fprintf(&b, "\t}\n\tchain output {\n\t\ttype route hook output priority mangle; policy accept;\n")
	if len(i.rules) > 0 {
		line("%s== %#x accept", of, ownMark)
	}
	for _, f := range families {
		if len(i.rules) == 0 {
			break
		}
		// A connection of this host stays on the way that it began with, while rules come and go.
		addresses := fmt.Sprintf("%[1]s saddr . tcp sport . %[1]s daddr . tcp dport", f.word)
		for _, r := range i.rules {
			if match, ok := r.match(f.word, f.four); ok {
				if r.cgroup != nil {
					match = r.cgroup.match() + match
				}
				line("%s%s update @%s { %s } %s accept", match, r.begins(), f.own, addresses, mark)
			}
		}
		line("%s delete @%s { %s }", newConnection, f.own, addresses)
		line("%s @%s update @%s { %s } %s", addresses, f.own, f.own, addresses, mark)
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

// begins matches the first packet of a rule's connections.
func (r takeRule) begins() string {
	if r.foreign {
		return newConnection + " fib daddr type != local"
	}
	return newConnection
}

// match returns what matches the addresses and ports of a rule's connections in a family of addresses, or false if it
// has none.
func (r takeRule) match(word string, four bool) (match string, ok bool) {
	of := func(all []netip.Prefix) (out []string) {
		for _, p := range all {
			if p.Addr().Is4() == four {
				out = append(out, p.String())
			}
		}
		return out
	}
	src, dst, destinations := of(r.Src), of(r.Dst), of(r.destinations)
	if len(destinations) == 0 || len(src) == 0 && len(r.Src) > 0 || len(dst) == 0 && len(r.Dst) > 0 || r.Cgroup != "" && r.cgroup == nil {
		return "", false
	}
	if len(src) > 0 {
		match += fmt.Sprintf("%s saddr { %s } ", word, strings.Join(src, ", "))
	}
	match += fmt.Sprintf("%s daddr { %s } ", word, strings.Join(destinations, ", "))
	if len(dst) > 0 {
		match += fmt.Sprintf("%s daddr { %s } ", word, strings.Join(dst, ", "))
	}
	var ports []string
	for _, p := range r.Ports {
		ports = append(ports, p.String())
	}
	if len(ports) > 0 {
		match += fmt.Sprintf("tcp dport { %s } ", strings.Join(ports, ", "))
	}
	return match, true
}

// apply makes the kernel take the connections. The caller's network namespace is changed.
func (i interception) apply() error {
	if err := nft(i.ruleset()); err != nil {
		return err
	}
	return route(true)
}

// removeInterception removes all that apply has made.
func removeInterception() error {
	return errors.Join(nft(fmt.Sprintf("add table inet %[1]s\ndelete table inet %[1]s\n", table)), route(false))
}

func nft(text string) error {
	c := exec.Command("nft", "-f", "-")
	c.Stdin = strings.NewReader(text)
	out, err := c.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("taking connections needs the program nft: install the package nftables")
	}
	if err != nil {
		return fmt.Errorf("nft: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// route delivers packets with takenMark on this host, or no longer.
func route(on bool) (err error) {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("cannot deliver taken connections: %w", err)
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		r := netlink.NewRule()
		mask := uint32(markMask)
		r.Family, r.Mark, r.Mask, r.Table, r.Priority = family, takenMark, &mask, routeTable, routePriority
		any := "0.0.0.0/0"
		if family == unix.AF_INET6 {
			any = "::/0"
		}
		dst, _ := netlink.ParseIPNet(any)
		local := &netlink.Route{LinkIndex: lo.Attrs().Index, Dst: dst, Table: routeTable, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST}
		if !on {
			for _, one := range []error{netlink.RuleDel(r), netlink.RouteDel(local)} {
				if one != nil && !errors.Is(one, unix.ENOENT) && !errors.Is(one, unix.ESRCH) {
					err = errors.Join(err, one)
				}
			}
			continue
		}
		rules, e := netlink.RuleListFiltered(family, r, netlink.RT_FILTER_PRIORITY|netlink.RT_FILTER_TABLE)
		if e == nil && !slices.ContainsFunc(rules, func(o netlink.Rule) bool { return o.Mark == takenMark }) {
			e = netlink.RuleAdd(r)
		}
		if e == nil {
			e = netlink.RouteReplace(local)
		}
		err = errors.Join(err, e)
	}
	if err != nil {
		return fmt.Errorf("cannot deliver taken connections: %w", err)
	}
	return nil
}
