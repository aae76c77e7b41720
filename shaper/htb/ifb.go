package htb

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"headgate/group"
	"headgate/internal/nl"
)

// ifbName is the IFB of a device; a device's index is never used twice in a
// network namespace until it wraps.
func ifbName(index int) string { return group.IFBPrefix + strconv.Itoa(index) }

// ifbAlias marks an IFB as ours. The device may have another name by now.
func ifbAlias(dev string) string { return ifbAliasPrefix + dev }

const ifbAliasPrefix = "headgate ingress of "

// isOurIFB knows a device that addIFB made. Versions before this one set it up and
// gave it its alias afterwards: one that has neither is what they left when killed.
func isOurIFB(l netlink.Link) bool {
	a := l.Attrs()
	index, err := strconv.Atoi(strings.TrimPrefix(a.Name, group.IFBPrefix))
	if l.Type() != "ifb" || err != nil || a.Name != ifbName(index) {
		return false
	}
	return strings.HasPrefix(a.Alias, ifbAliasPrefix) || a.Alias == "" && !isUp(l)
}

func (k *kernel) readIFB(c *nl.Conn) error {
	name := ifbName(k.Index())
	ifb, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look up device %s: %w", name, err)
	}
	if !isOurIFB(ifb) {
		k.sides[ingress].blocked = append(k.sides[ingress].blocked, fmt.Sprintf("device %s (%s), whose name Headgate needs", name, ifb.Type()))
		return nil
	}
	k.sides[ingress].qdisc = ifb
	k.sides[ingress].tree, err = readTree(c, ifb.Attrs().Index, k.Qdiscs)
	return err
}

// isUp tells whether a device passes packets at all.
func isUp(l netlink.Link) bool { return l.Attrs().Flags&net.FlagUp != 0 }

// addIFB makes the device that ingress is redirected to.
func (k *kernel) addIFB(c *nl.Conn) error {
	name := ifbName(k.Index())
	var b nl.Batch
	b.AddIFB(name, k.Link.Attrs().MTU, ifbAlias(k.Name()))
	if err := c.Execute(&b); err != nil {
		return fmt.Errorf("cannot make an IFB, on which \"in\" is shaped (kernel option CONFIG_IFB): %w", err)
	}
	ifb, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("cannot look up device %s: %w", name, err)
	}
	k.sides[ingress].qdisc = ifb
	return nil
}

func (k *kernel) removeIFB() error {
	ifb := k.sides[ingress].qdisc
	if ifb == nil {
		return nil
	}
	if err := netlink.LinkDel(ifb); err != nil && !errors.As(err, &netlink.LinkNotFoundError{}) {
		return fmt.Errorf("cannot remove device %s: %w", ifb.Attrs().Name, err)
	}
	return nil
}

// sweepIFBs removes the IFBs of devices that are gone, and names them.
func sweepIFBs() (removed []string) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil
	}
	there := map[string]bool{}
	for _, l := range links {
		there[ifbName(l.Attrs().Index)] = true
	}
	for _, l := range links {
		if isOurIFB(l) && !there[l.Attrs().Name] {
			if err := netlink.LinkDel(l); err != nil {
				slog.Warn("cannot remove the IFB of a device that is gone", "ifb", l.Attrs().Name, "error", err)
				continue
			}
			removed = append(removed, l.Attrs().Name)
		}
	}
	return removed
}
