package htb

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
)

// ifbName returns the name of a device's IFB. A network namespace does not reuse device indices
// until they wrap.
func ifbName(index int) string { return group.IFBPrefix + strconv.Itoa(index) }

// ifbAlias returns the alias that marks an IFB as Headgate's. The device may have been renamed
// since.
func ifbAlias(dev string) string { return ifbAliasPrefix + dev }

const ifbAliasPrefix = "headgate ingress of "

// isOurIFB reports whether addIFB created the device. Earlier versions set the alias and the up
// state after creation: an IFB with neither was left by such a version when it was killed.
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

// isUp reports whether a device is up.
func isUp(l netlink.Link) bool { return l.Attrs().Flags&net.FlagUp != 0 }

// addIFB creates the IFB that ingress is redirected to.
func (k *kernel) addIFB(c *nl.Conn) error {
	name := ifbName(k.Index())
	var b nl.Batch
	b.AddIFB(name, k.Link.Attrs().MTU, ifbAlias(k.Name()))
	if err := c.Execute(&b); err != nil {
		return fmt.Errorf("cannot create the IFB on which \"in\" is shaped (kernel option CONFIG_IFB): %w", err)
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

// sweepIFBs removes the IFBs of removed devices, and returns their names.
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
				slog.Warn("cannot remove IFB of a removed device", "ifb", l.Attrs().Name, "error", err)
				continue
			}
			removed = append(removed, l.Attrs().Name)
		}
	}
	return removed
}
