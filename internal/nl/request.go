package nl

import (
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// DeleteQdisc removes a qdisc and everything below it.
func (b *Batch) DeleteQdisc(ifindex int, handle, parent Handle) {
	b.add(requestDescription{"remove the qdisc", handle}, unix.RTM_DELQDISC, 0, TC{Ifindex: ifindex, Handle: handle, Parent: parent}.bytes())
}

// DeleteClass removes a class without children, and its leaf qdisc.
func (b *Batch) DeleteClass(ifindex int, class Handle) {
	b.add(requestDescription{"remove the class", class}, unix.RTM_DELTCLASS, 0, TC{Ifindex: ifindex, Handle: class}.bytes())
}

func (b *Batch) tc(what requestDescription, typ uint16, flags netlink.HeaderFlags, t TC, kind string, options func(*netlink.AttributeEncoder)) {
	ae := netlink.NewAttributeEncoder()
	ae.String(unix.TCA_KIND, kind)
	if options != nil {
		ae.Nested(unix.TCA_OPTIONS, func(nested *netlink.AttributeEncoder) error { options(nested); return nil })
	}
	b.encode(what, typ, flags, t.bytes(), ae)
}

func (b *Batch) tcRaw(what requestDescription, typ uint16, flags netlink.HeaderFlags, t TC, kind string, options []byte) {
	ae := netlink.NewAttributeEncoder()
	ae.String(unix.TCA_KIND, kind)
	ae.Bytes(unix.TCA_OPTIONS, options)
	b.encode(what, typ, flags, t.bytes(), ae)
}

func (b *Batch) encode(what requestDescription, typ uint16, flags netlink.HeaderFlags, head []byte, ae *netlink.AttributeEncoder) {
	attrs, err := ae.Encode()
	if err != nil {
		panic(fmt.Sprintf("nl: %s: %v", what, err)) // only a value that is too long for an attribute causes an error
	}
	b.add(what, typ, flags, append(head, attrs...))
}
