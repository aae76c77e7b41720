package nl

import (
	"encoding/binary"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// AddIFB makes an IFB device, which is up from its first moment: one that is down
// drops all that it is sent. Its alias takes a second request, because the kernel
// gives none to a device that it makes (net/core/rtnetlink.c, rtnl_create_link).
func (b *Batch) AddIFB(name string, mtu int, alias string) {
	b.link(task{words: "make the device " + name}, netlink.Create|netlink.Excl, 0, unix.IFF_UP, func(ae *netlink.AttributeEncoder) {
		ae.String(unix.IFLA_IFNAME, name)
		ae.Uint32(unix.IFLA_MTU, uint32(mtu))
		ae.Nested(unix.IFLA_LINKINFO, func(info *netlink.AttributeEncoder) error { info.String(unix.IFLA_INFO_KIND, "ifb"); return nil })
	})
	b.link(task{words: "give an alias to the device " + name}, 0, 0, 0, func(ae *netlink.AttributeEncoder) {
		ae.String(unix.IFLA_IFNAME, name)
		ae.Bytes(unix.IFLA_IFALIAS, []byte(alias))
	})
}

// SetUp sets a device up, and gives it an alias.
func (b *Batch) SetUp(ifindex int, alias string) {
	b.link(task{words: "set a device up"}, 0, ifindex, unix.IFF_UP, func(ae *netlink.AttributeEncoder) {
		ae.Bytes(unix.IFLA_IFALIAS, []byte(alias))
	})
}

// link asks for a device, with flags that it shall have besides those it has
// (struct ifinfomsg, uapi/linux/rtnetlink.h).
func (b *Batch) link(what task, flags netlink.HeaderFlags, ifindex int, up uint32, attrs func(*netlink.AttributeEncoder)) {
	info := make([]byte, unix.SizeofIfInfomsg, 128)
	binary.NativeEndian.PutUint32(info[4:], uint32(int32(ifindex)))
	binary.NativeEndian.PutUint32(info[8:], up)
	binary.NativeEndian.PutUint32(info[12:], up)
	ae := netlink.NewAttributeEncoder()
	attrs(ae)
	b.encode(what, unix.RTM_NEWLINK, flags, info, ae)
}
