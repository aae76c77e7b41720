package nl

import (
	"encoding/binary"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// txQueueLength is the usual length for devices. An IFB has 32 (drivers/net/ifb.c, TX_Q_LIMIT), and
// queues that HTB creates by itself hold as many packets.
const txQueueLength = 1000

// AddIFB creates an IFB device that is up from the start: a device that is down drops all packets.
// Its alias requires a second request, because the kernel ignores an alias when it creates a device
// (net/core/rtnetlink.c, rtnl_create_link).
func (b *Batch) AddIFB(name string, mtu int, alias string) {
	b.link(requestDescription{words: "create the device " + name}, netlink.Create|netlink.Excl, 0, unix.IFF_UP, func(ae *netlink.AttributeEncoder) {
		ae.String(unix.IFLA_IFNAME, name)
		ae.Uint32(unix.IFLA_MTU, uint32(mtu))
		ae.Uint32(unix.IFLA_TXQLEN, txQueueLength)
		ae.Nested(unix.IFLA_LINKINFO, func(info *netlink.AttributeEncoder) error { info.String(unix.IFLA_INFO_KIND, "ifb"); return nil })
	})
	b.link(requestDescription{words: "set the alias of the device " + name}, 0, 0, 0, func(ae *netlink.AttributeEncoder) {
		ae.String(unix.IFLA_IFNAME, name)
		ae.Bytes(unix.IFLA_IFALIAS, []byte(alias))
	})
}

// MaxSize is the maximum size of a device's super-packets in bytes: of any kind, and of IPv4, which
// older kernels do not distinguish (0).
type MaxSize struct{ Size, IPv4 uint32 }

// Attribute types of a link (uapi/linux/if_link.h) that the library does not define.
const (
	iflaGSOMaxSize     = 41
	iflaGROMaxSize     = 58
	iflaGSOIPv4MaxSize = 63
	iflaGROIPv4MaxSize = 64
)

// SetGSOMaxSize limits the super-packets that are sent on a device.
func (b *Batch) SetGSOMaxSize(ifindex int, to MaxSize) {
	b.maxSize("set gso_max_size of a device", ifindex, iflaGSOMaxSize, iflaGSOIPv4MaxSize, to)
}

// SetGROMaxSize limits the super-packets that are merged from packets that a device receives.
func (b *Batch) SetGROMaxSize(ifindex int, to MaxSize) {
	b.maxSize("set gro_max_size of a device", ifindex, iflaGROMaxSize, iflaGROIPv4MaxSize, to)
}

func (b *Batch) maxSize(what string, ifindex int, all, ipv4 uint16, to MaxSize) {
	b.link(requestDescription{words: what}, 0, ifindex, 0, func(ae *netlink.AttributeEncoder) {
		ae.Uint32(all, to.Size)
		if to.IPv4 > 0 { // the kernel changes it together with the other only up to 64 KB
			ae.Uint32(ipv4, to.IPv4)
		}
	})
}

// SetUp sets a device up and sets its alias.
func (b *Batch) SetUp(ifindex int, alias string) {
	b.link(requestDescription{words: "set a device up"}, 0, ifindex, unix.IFF_UP, func(ae *netlink.AttributeEncoder) {
		ae.Bytes(unix.IFLA_IFALIAS, []byte(alias))
	})
}

// link appends a request for a device. up are flags to set in addition to the present ones (struct
// ifinfomsg, uapi/linux/rtnetlink.h).
func (b *Batch) link(what requestDescription, flags netlink.HeaderFlags, ifindex int, up uint32, attrs func(*netlink.AttributeEncoder)) {
	info := make([]byte, unix.SizeofIfInfomsg, 128)
	binary.NativeEndian.PutUint32(info[4:], uint32(int32(ifindex)))
	binary.NativeEndian.PutUint32(info[8:], up)
	binary.NativeEndian.PutUint32(info[12:], up)
	ae := netlink.NewAttributeEncoder()
	attrs(ae)
	b.encode(what, unix.RTM_NEWLINK, flags, info, ae)
}

// Link is a device of the network namespace.
type Link struct {
	Index    int
	Name     string
	AltNames []string
	MTU      int
	Up       bool
}

// rtextSkipStats omits counters from a dump (RTEXT_FILTER_SKIP_STATS, uapi/linux/rtnetlink.h),
// which are most of the work.
const rtextSkipStats = 8

// Links lists the devices.
func (c *Conn) Links() ([]Link, error) {
	ae := netlink.NewAttributeEncoder()
	ae.Uint32(unix.IFLA_EXT_MASK, rtextSkipStats)
	mask, err := ae.Encode()
	if err != nil {
		return nil, err
	}
	msgs, err := c.Dump("devices", unix.RTM_GETLINK, append(make([]byte, unix.SizeofIfInfomsg), mask...))
	if err != nil {
		return nil, err
	}
	out := make([]Link, 0, len(msgs))
	for _, m := range msgs {
		if len(m) < unix.SizeofIfInfomsg {
			return nil, fmt.Errorf("device message of %d bytes is too short", len(m))
		}
		l := Link{
			Index: int(int32(binary.NativeEndian.Uint32(m[4:]))),
			Up:    binary.NativeEndian.Uint32(m[8:])&unix.IFF_UP != 0,
		}
		ad, err := netlink.NewAttributeDecoder(m[unix.SizeofIfInfomsg:])
		if err != nil {
			return nil, fmt.Errorf("cannot parse a device: %w", err)
		}
		for ad.Next() {
			switch ad.Type() {
			case unix.IFLA_IFNAME:
				l.Name = ad.String()
			case unix.IFLA_PROP_LIST:
				ad.Nested(func(ad *netlink.AttributeDecoder) error {
					for ad.Next() {
						if ad.Type() == unix.IFLA_ALT_IFNAME {
							l.AltNames = append(l.AltNames, ad.String())
						}
					}
					return nil
				})
			case unix.IFLA_MTU:
				l.MTU = int(ad.Uint32())
			}
		}
		if err := ad.Err(); err != nil {
			return nil, fmt.Errorf("cannot parse a device: %w", err)
		}
		out = append(out, l)
	}
	return out, nil
}
