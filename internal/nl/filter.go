package nl

import (
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Attribute types of cls_bpf (uapi/linux/pkt_cls.h).
const (
	bpfFD    = 6
	bpfName  = 7
	bpfFlags = 8
	bpfID    = 11

	bpfActDirect = 1
)

// FilterHandle is the handle of Headgate's filter within its preference, in which other programs
// may have filters of the same kind.
const FilterHandle Handle = 1

// AddClsact creates the qdisc that provides the two filter hooks of a device.
func (b *Batch) AddClsact(ifindex int) {
	b.tc(requestDescription{words: "create the clsact qdisc"}, unix.RTM_NEWQDISC, netlink.Create,
		TC{Ifindex: ifindex, Handle: ClsactHandle, Parent: Clsact}, "clsact", nil)
}

// SetBPFFilter attaches a program to a clsact hook, or replaces the attached one atomically: every
// packet is processed by one of the two.
func (b *Batch) SetBPFFilter(ifindex int, hook Handle, pref uint16, fd int, name string) {
	b.tc(requestDescription{words: "attach " + name}, unix.RTM_NEWTFILTER, netlink.Create,
		TC{Ifindex: ifindex, Handle: FilterHandle, Parent: hook, Info: filterInfo(pref)}, "bpf", func(ae *netlink.AttributeEncoder) {
			ae.Uint32(bpfFD, uint32(fd))
			ae.String(bpfName, name)
			ae.Uint32(bpfFlags, bpfActDirect)
		})
}

// SetClassFilter attaches a program to a qdisc as a classifying filter: the program returns the
// class's handle, or 0 for none (net/sched/cls_bpf.c, cls_bpf_classify, without direct action).
func (b *Batch) SetClassFilter(ifindex int, qdisc Handle, pref uint16, fd int, name string) {
	b.tc(requestDescription{words: "attach " + name}, unix.RTM_NEWTFILTER, netlink.Create,
		TC{Ifindex: ifindex, Handle: FilterHandle, Parent: qdisc, Info: filterInfo(pref)}, "bpf", func(ae *netlink.AttributeEncoder) {
			ae.Uint32(bpfFD, uint32(fd))
			ae.String(bpfName, name)
		})
}

// DeleteBPFFilter removes a filter that SetBPFFilter attached. The request has a handle because
// without one the kernel removes all filters of the preference (net/sched/cls_api.c,
// tc_del_tfilter).
func (b *Batch) DeleteBPFFilter(ifindex int, hook Handle, pref uint16) {
	b.tc(requestDescription{words: "remove a filter"}, unix.RTM_DELTFILTER, 0,
		TC{Ifindex: ifindex, Handle: FilterHandle, Parent: hook, Info: filterInfo(pref)}, "bpf", nil)
}

// BPFFilter returns a program's name and id from a dump.
func (o Object) BPFFilter() (name string, id uint32) {
	ad, err := netlink.NewAttributeDecoder(o.Options)
	if err != nil {
		return "", 0
	}
	for ad.Next() {
		switch ad.Type() {
		case bpfName:
			name = ad.String()
		case bpfID:
			id = ad.Uint32()
		}
	}
	return name, id
}

// IsBPFFilter reports whether a dumped filter was attached by SetBPFFilter or SetClassFilter.
func (o Object) IsBPFFilter(pref uint16, name string) bool {
	has, _ := o.BPFFilter()
	return o.Kind == "bpf" && o.Pref() == pref && o.Handle == FilterHandle && has == name
}

// Pref returns the preference of a dumped filter. The kernel runs filters in ascending order of
// preference.
func (o Object) Pref() uint16 { return uint16(o.Info >> 16) }

// filterInfo combines a preference with the protocol "all" in network byte order.
func filterInfo(pref uint16) uint32 {
	return uint32(pref)<<16 | uint32(unix.ETH_P_ALL>>8|unix.ETH_P_ALL<<8&0xFF00)
}
