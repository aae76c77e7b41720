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
	// rules are those whose exit has a stream.
	rules []relay.Rule
	// destinations are those of the exits that have a stream.
	destinations []netip.Prefix
	// exit is true if the agent connects to destinations with the client's address.
	exit bool
}

// ruleset returns the agent's nftables table. Loading it replaces the former one at once.
func (i interception) ruleset() string {
	var b strings.Builder
	fmt.Fprintf(&b, "add table inet %[1]s\ndelete table inet %[1]s\ntable inet %[1]s {\n", table)
	type matched struct{ family, text string }
	var taken []matched
	for _, family := range []struct {
		word string
		four bool
	}{{"ip", true}, {"ip6", false}} {
		of := func(all []netip.Prefix) (out []string) {
			for _, p := range all {
				if p.Addr().Is4() == family.four {
					out = append(out, p.String())
				}
			}
			return out
		}
		destinations := of(i.destinations)
		for _, r := range i.rules {
			match := ""
			if src := of(r.Src); len(r.Src) > 0 {
				if len(src) == 0 {
					continue
				}
				match += fmt.Sprintf("%s saddr { %s } ", family.word, strings.Join(src, ", "))
			}
			dst := of(r.Dst)
			if len(r.Dst) > 0 && len(dst) == 0 || len(destinations) == 0 {
				continue
			}
			match += fmt.Sprintf("%s daddr { %s } ", family.word, strings.Join(destinations, ", "))
			if len(dst) > 0 {
				match += fmt.Sprintf("%s daddr { %s } ", family.word, strings.Join(dst, ", "))
			}
			var ports []string
			for _, p := range r.Ports {
				ports = append(ports, p.String())
			}
			if len(ports) > 0 {
				match += fmt.Sprintf("tcp dport { %s } ", strings.Join(ports, ", "))
			}
			taken = append(taken, matched{family.word, match})
		}
	}
	fmt.Fprintf(&b, "\tchain prerouting {\n\t\ttype filter hook prerouting priority mangle; policy accept;\n")
	for _, m := range taken {
		// Later packets are those of a socket, below, or of a connection that goes direct and must stay so. tproxy ends
		// the rule if nothing listens: the connections of an agent that was killed go direct. It also finds the listener
		// where the addresses are in TIME_WAIT.
		fmt.Fprintf(&b, "\t\tmeta mark & %#x != %#x %stcp flags & (fin | syn | rst | ack) == syn tproxy %s to :%d meta mark set meta mark & %#x | %#x accept\n", markMask, ownMark, m.text, m.family, i.port, ^uint32(markMask), takenMark)
	}
	// Connections of this agent, also those of a former process with other rules.
	if i.exit || len(i.rules) > 0 {
		fmt.Fprintf(&b, "\t\tmeta l4proto tcp socket transparent 1 meta mark set meta mark & %#x | %#x accept\n", ^uint32(markMask), takenMark)
	}
	fmt.Fprintf(&b, "\t}\n\tchain output {\n\t\ttype route hook output priority mangle; policy accept;\n")
	for _, m := range taken {
		fmt.Fprintf(&b, "\t\tmeta mark & %#x != %#x %smeta l4proto tcp meta mark set meta mark & %#x | %#x\n", markMask, ownMark, m.text, ^uint32(markMask), takenMark)
	}
	b.WriteString("\t}\n}\n")
	return b.String()
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
