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

	"headgate/group"
	"headgate/internal/nl"
)

// Around is what else is on the way in of a device, besides filters, and what of it a
// packet does not pass as others do that a filter redirects to an IFB, and the IFB
// puts back: it goes on behind netfilter's ingress hook (net/core/dev.c,
// __netif_receive_skb_core; drivers/net/ifb.c, ifb_ri_tasklet, sets tc_skip_classify).
// All of it is in words, and none of it is ours.
type Around struct {
	// Chains of nftables, which redirected packets pass by; those that a chain of ours
	// forwards behind all others' (SetForward) do not.
	Chains []string
	// Blocking is what there is no way around: flowtables, whose packets go out through
	// another device before they come to the end of the hook; chains that are as far
	// behind as ours; XDP programs in generic mode, which take what comes from an IFB
	// for a packet that has just arrived, and run again.
	Blocking []string

	forward    *nl.IngressHook
	forwarding bool // there is a chain in our table, be it on the device or not
}

// Around looks at what is on the way in. It is asked where ingress is redirected, and
// takes a fifth of a millisecond.
func (d *Device) Around() (*Around, error) {
	if d.around != nil {
		return d.around, nil
	}
	hooks, err := nl.IngressHooks()
	if err != nil {
		return nil, err
	}
	a := &Around{}
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
			a.Blocking = append(a.Blocking, fmt.Sprintf("%s (packets that are put back by the IFB may pass it by: give it a lower priority)", chainWords(h)))
		default:
			a.Chains = append(a.Chains, chainWords(h))
		}
	}
	if x := d.Link.Attrs().Xdp; x != nil && x.AttachMode == vnl.XDP_ATTACHED_SKB {
		a.Blocking = append(a.Blocking, fmt.Sprintf(
			"XDP program %d in generic mode (packets that are put back by the IFB would run it twice: attach it in the driver's mode, \"xdpdrv\", or on another device of their way)", x.ProgId))
	}
	d.around = a
	return a, nil
}

// chainWords names a chain as nft does.
func chainWords(h nl.IngressHook) string {
	return fmt.Sprintf("nftables ingress chain %s %s %s priority %d", h.Family, printable(h.Table), printable(h.Name), h.Priority)
}

func flowtableWords(h nl.IngressHook) string {
	name := fmt.Sprintf("%s %s %s", h.Family, printable(h.Table), printable(h.Name))
	return fmt.Sprintf("nftables flowtable %s (what it forwards is not divided here, and what is put back by the IFB would pass it by: divide \"out\" of the device that the traffic leaves by, or take this device out of it: \"nft delete flowtable %s\")",
		name, name)
}

// Offloaded are the flowtables on a device whose work its network card does, in words.
func Offloaded(dev string) (words []string, err error) {
	hooks, err := nl.IngressHooks()
	for _, h := range hooks {
		if h.Flowtable && h.Offload && h.On(dev) {
			words = append(words, fmt.Sprintf("nftables flowtable %s %s %s", h.Family, printable(h.Table), printable(h.Name)))
		}
	}
	return words, err
}

// printable makes a name that others chose fit for a terminal.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
}

// Obstacle says of something of others', in words, that it came into the way of what
// is in force, and InTheWay knows those words.
func Obstacle(what string) string { return what + obstacle }

// InTheWay tells whether words are those of Obstacle.
func InTheWay(words string) bool { return strings.HasSuffix(words, obstacle) }

const obstacle = ": it is in the way, and an apply would be refused"

// forwardTable is the table of nftables that has the chain of a device: it is ours by
// its name, which is also that of the IFB.
func forwardTable(index int) string { return group.IFBPrefix + strconv.Itoa(index) }

// forwardChain is the chain's name. Where it forwards to is in it, so that what is
// there can be compared with what should be by what a list of chains says: builds whose rule
// left our class in the packet's priority named theirs "to-".
func forwardChain(ifb int) string { return "into-" + strconv.Itoa(ifb) }

// ForwardName names the chain that forwards from a device to an IFB.
func (d *Device) ForwardName(ifb int) string {
	return "nftables chain netdev " + forwardTable(d.Index()) + " " + forwardChain(ifb)
}

// Forwards tells whether the device's chain is as SetForward makes it: somebody may
// have removed its rule, or, from Linux 6.16 on, the device may have another name.
func (a *Around) Forwards(ifb int) bool {
	f := a.forward
	return f != nil && f.Name == forwardChain(ifb) && f.Priority == nl.LastPriority && f.Rules == 1 && len(f.Devices) > 0 && !f.Devices[0].Prefix
}

// Forwarding tells whether there is a chain of ours, be it as it should or not.
func (a *Around) Forwarding() bool { return a.forwarding }

// SetForward makes the chain that sends packets with a class of the qdisc major: to
// an IFB, behind all others' chains, or puts it in the place of the one that is there.
func (d *Device) SetForward(major uint16, ifb int) error {
	err := nl.SetForward(nl.Forward{Table: forwardTable(d.Index()), Chain: forwardChain(ifb), Dev: d.Name(), Major: major, To: ifb})
	if err != nil && d.around != nil && len(d.around.Chains) > 0 {
		return fmt.Errorf("%w; without it %s would not see the packets: move its rules to a chain at the hook prerouting", err, strings.Join(d.around.Chains, ", "))
	}
	return err
}

// RemoveForward removes the device's chain, if there is one.
func (d *Device) RemoveForward() error {
	r := d.Sides[Ingress].Record
	forwards := r != nil && r.Forward
	a, err := d.Around()
	switch {
	case err != nil && !forwards:
		return nil // a list of chains that cannot be read keeps nobody from clearing
	case err != nil:
		return err
	case !a.forwarding && !forwards:
		return nil
	}
	return nl.DeleteForward(forwardTable(d.Index()))
}

// SweepForwards removes the tables of devices that are gone: before Linux 6.16 their
// chains went with the devices, and left them empty.
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
			slog.Warn("cannot remove the nftables table of a device that is gone", "table", table, "error", err)
		}
	}
}
