package nl

import (
	"encoding/binary"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Attribute types and values of an action in a filter (uapi/linux/pkt_cls.h,
// tc_act/tc_mirred.h).
const (
	bpfAct        = 1
	actKind       = 1
	actOptions    = 2
	mirredParms   = 2
	mirredEgress  = 1 // TCA_EGRESS_REDIR
	actionStolen  = 4 // TC_ACT_STOLEN
	mirredParmLen = 28
)

// SetRedirectingFilter is SetBPFFilter for a program whose result does not decide about the packet:
// the action mirred redirects every packet to a device after the program. The program must not
// return 0.
func (b *Batch) SetRedirectingFilter(ifindex int, hook Handle, pref uint16, fd int, name string, to int) {
	parms := make([]byte, mirredParmLen)
	binary.NativeEndian.PutUint32(parms[8:], actionStolen)
	binary.NativeEndian.PutUint32(parms[20:], mirredEgress)
	binary.NativeEndian.PutUint32(parms[24:], uint32(to))
	b.tc(requestDescription{words: "attach " + name}, unix.RTM_NEWTFILTER, netlink.Create,
		TC{Ifindex: ifindex, Handle: FilterHandle, Parent: hook, Info: filterInfo(pref)}, "bpf", func(ae *netlink.AttributeEncoder) {
			ae.Uint32(bpfFD, uint32(fd))
			ae.String(bpfName, name)
			ae.Nested(bpfAct, func(list *netlink.AttributeEncoder) error {
				list.Nested(1, func(act *netlink.AttributeEncoder) error { // the only action
					act.String(actKind, "mirred")
					act.Nested(actOptions, func(o *netlink.AttributeEncoder) error { o.Bytes(mirredParms, parms); return nil })
					return nil
				})
				return nil
			})
		})
}
