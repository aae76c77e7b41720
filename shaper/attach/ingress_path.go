package attach

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"unicode"

	"github.com/vishvananda/netlink"
	vnl "github.com/vishvananda/netlink/nl"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
)

// IngressPath describes foreign objects on a device's ingress path, besides filters, and which of
// them a redirected packet skips. After a filter redirected a packet to an IFB and the IFB
// re-injected it, the packet continues after netfilter's ingress hook (net/core/dev.c,
// __netif_receive_skb_core; drivers/net/ifb.c, ifb_ri_tasklet, sets tc_skip_classify). All
// fields are descriptions.
type IngressPath struct {
	// Chains lists nftables chains that redirected packets skip. If a chain of Headgate that
	// runs after all others forwards the packets (SetForward), they do not skip these chains.
	Chains []string
	// Blocking lists objects without a workaround: flowtables, whose packets leave through
	// another device before the end of the hook; chains with the same priority as Headgate's
	// chain; XDP programs in generic mode, which process packets from an IFB as newly received
	// packets and so run twice.
	Blocking []string

	forward    *nl.IngressHook
	forwarding bool // Headgate's table has a chain, on this device or not
}

// IngressPath reads the objects on the ingress path. It is called only if ingress is redirected, and
// takes a fifth of a millisecond.
func (d *Device) IngressPath() (*IngressPath, error) {
	if d.ingressPath != nil {
		return d.ingressPath, nil
	}
	hooks, err := nl.IngressHooks()
	if err != nil {
		return nil, err
	}
	a := &IngressPath{}
	for _, h := range hooks {
		switch {
		case h.Family == "netdev" && h.Table == forwardTable(d.Index()):
			a.forwarding = true
			if h.On(d.Name()) && !h.Flowtable {
				a.forward = &h
			}
		case !h.On(d.Name()):
		case h.Flowtable:
			a.Blocking = append(a.Blocking, flowtableWords(h))
		case h.Priority == nl.LastPriority:
			a.Blocking = append(a.Blocking, fmt.Sprintf("%s (packets that the IFB re-injects may skip it: give it a lower priority)", chainWords(h)))
		default:
			a.Chains = append(a.Chains, chainWords(h))
		}
	}
	if x := d.Link.Attrs().Xdp; x != nil && x.AttachMode == vnl.XDP_ATTACHED_SKB {
		a.Blocking = append(a.Blocking, fmt.Sprintf(
			"XDP program %d in generic mode (packets that the IFB re-injects would run it twice: attach it in driver mode, \"xdpdrv\", or on another device of the path)", x.ProgId))
	}
	d.ingressPath = a
	return a, nil
}

// chainWords formats the name of a chain as nft does.
func chainWords(h nl.IngressHook) string {
	return fmt.Sprintf("nftables ingress chain %s %s %s priority %d", h.Family, printable(h.Table), printable(h.Name), h.Priority)
}

func flowtableWords(h nl.IngressHook) string {
	name := fmt.Sprintf("%s %s %s", h.Family, printable(h.Table), printable(h.Name))
	return fmt.Sprintf("nftables flowtable %s (packets that it forwards are not shaped here, and packets that the IFB re-injects would skip it: configure \"out\" of the device that the traffic leaves by, or remove this device from it: \"nft delete flowtable %s\")",
		name, name)
}

// Offloaded describes the flowtables of a device that are offloaded to its network card.
func Offloaded(dev string) (words []string, err error) {
	hooks, err := nl.IngressHooks()
	for _, h := range hooks {
		if h.Flowtable && h.Offload && h.On(dev) {
			words = append(words, fmt.Sprintf("nftables flowtable %s %s %s", h.Family, printable(h.Table), printable(h.Name)))
		}
	}
	return words, err
}

// printable replaces characters of a foreign name that are unsafe for a terminal.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
}

// WithConflict appends to a description of a foreign object that it conflicts with the state in
// force. IsConflict recognizes such descriptions.
func WithConflict(what string) string { return what + conflictSuffix }

// IsConflict reports whether words were returned by WithConflict.
func IsConflict(words string) bool { return strings.HasSuffix(words, conflictSuffix) }

const conflictSuffix = ": conflicts with Headgate, and apply would fail"

// forwardTable returns the name of the nftables table with a device's chain. The name marks the
// table as Headgate's; it is also the name of the IFB.
func forwardTable(index int) string { return group.IFBPrefix + strconv.Itoa(index) }

// forwardChain returns the name of the chain. The name contains the target index, so that a
// list of chains shows whether the actual target is the desired one. Builds whose rule left
// Headgate's class in the packet's priority used the prefix "to-".
func forwardChain(ifb int) string { return "into-" + strconv.Itoa(ifb) }

// ForwardName returns the full name of the chain that forwards from a device to an IFB.
func (d *Device) ForwardName(ifb int) string {
	return "nftables chain netdev " + forwardTable(d.Index()) + " " + forwardChain(ifb)
}

// Forwards reports whether the device's chain is as SetForward creates it. Another program may
// have removed its rule, or, from Linux 6.16 on, the device may have been renamed.
func (a *IngressPath) Forwards(ifb int) bool {
	f := a.forward
	return f != nil && f.Name == forwardChain(ifb) && f.Priority == nl.LastPriority && f.Rules == 1 && len(f.Devices) > 0 && !f.Devices[0].Prefix
}

// Forwarding reports whether Headgate's chain exists, complete or not.
func (a *IngressPath) Forwarding() bool { return a.forwarding }

// SetForward creates or replaces the chain that sends packets with a class of the qdisc major:
// to an IFB, after all other chains.
func (d *Device) SetForward(major uint16, ifb int) error {
	err := nl.SetForward(nl.Forward{Table: forwardTable(d.Index()), Chain: forwardChain(ifb), Dev: d.Name(), Major: major, To: ifb})
	if err != nil && d.ingressPath != nil && len(d.ingressPath.Chains) > 0 {
		return fmt.Errorf("%w; without this chain, %s would not see the packets: move its rules to a chain at the prerouting hook", err, strings.Join(d.ingressPath.Chains, ", "))
	}
	return err
}

// RemoveForward removes the device's chain, if there is one.
func (d *Device) RemoveForward() error {
	r := d.Sides[Ingress].Record
	forwards := r != nil && r.Forward
	a, err := d.IngressPath()
	switch {
	case err != nil && !forwards:
		return nil // an unreadable list of chains must not prevent clearing
	case err != nil:
		return err
	case !a.forwarding && !forwards:
		return nil
	}
	return nl.DeleteForward(forwardTable(d.Index()))
}

// SweepForwards removes the tables of removed devices. Before Linux 6.16, their chains were
// removed with the devices, and the tables stayed empty.
func SweepForwards() {
	tables, err := nl.NetdevTables()
	if err != nil {
		return
	}
	for _, table := range tables {
		index, err := strconv.Atoi(strings.TrimPrefix(table, group.IFBPrefix))
		if err != nil || table != forwardTable(index) {
			continue
		}
		if _, err := netlink.LinkByIndex(index); !errors.As(err, &netlink.LinkNotFoundError{}) {
			continue
		}
		if err := nl.DeleteForward(table); err != nil {
			slog.Warn("cannot remove nftables table of a removed device", "table", table, "error", err)
		}
	}
}
