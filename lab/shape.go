package lab

import (
	"fmt"
	"math"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/ethtool"
	"headgate.dev/headgate/unit"
)

// Constants of a limited path, chosen by this project.
const (
	// burstTime is how much HTB may send at once after a late timer. An idle link may also send as
	// much at once, so it is as short as possible. On a machine whose timers were late by more than
	// 0.3 ms for 0.1 % of the time, 250 us lost 1.4 % of 101 Mbit/s and 1 ms lost nothing.
	burstTime = 1e-3
	// segmentBelow is the rate below which super-packets are segmented: a full one (68,130 bytes)
	// takes more than 1 ms there, and on a real link other packets could be sent between its segments.
	segmentBelow = 545 * unit.Mbit
	// cutBurst lets a frame of 1,514 bytes and a VLAN tag pass TBF, but nothing larger, which TBF then
	// segments (tbf_segment); wholeBurst lets all packets pass.
	cutBurst, wholeBurst = 1600, 80_000
	// leafRate of TBF refills cutBurst in 13 ns, so that HTB never finds the leaf throttled. At 10
	// Gbit/s (1.3 us) it often was, which cost a timer's latency.
	leafRate = 1 * unit.Tbit
	// frame is a full Ethernet frame.
	frame = mtu + 14
)

// Handles of a limited device: HTB, its class, and the class's leaf.
var shapeRoot, shapeClass, shapeLeaf = netlink.MakeHandle(1, 0), netlink.MakeHandle(1, 1), netlink.MakeHandle(2, 0)

// shape limits what link sends: an HTB class of the rate, with a much faster TBF as leaf. HTB is exact
// at any rate; TBF limits the queue in bytes and segments super-packets. The calling thread must be in
// h's namespace.
func shape(h *netlink.Handle, link netlink.Link, p Path) error {
	if p.Rate == 0 {
		return nil
	}
	htb := netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: shapeRoot})
	htb.Defcls = 1
	if err := h.QdiscAdd(htb); err != nil {
		return fmt.Errorf("add HTB: %w", err)
	}
	if err := h.ClassAdd(class(link, p)); err != nil {
		return fmt.Errorf("add HTB class: %w", err)
	}
	if err := addLeaf(link, shapeClass, shapeLeaf, uint32(p.queueBytes()), leafBurst(p)); err != nil {
		return fmt.Errorf("add TBF: %w", err)
	}
	return nil
}

// reshape changes the rate and queue of a device that shape limited. Queued packets stay, and leave at
// the new rate.
func reshape(h *netlink.Handle, link netlink.Link, p Path) error {
	if err := h.ClassChange(class(link, p)); err != nil {
		return fmt.Errorf("change HTB class: %w", err)
	}
	if err := setLeaf(link, shapeClass, shapeLeaf, uint32(p.queueBytes()), leafBurst(p), 0); err != nil {
		return fmt.Errorf("change TBF: %w", err)
	}
	return nil
}

func class(link netlink.Link, p Path) *netlink.HtbClass {
	burst := max(uint32(float64(p.Rate)/8*burstTime), 2*frame)
	return netlink.NewHtbClass(
		netlink.ClassAttrs{LinkIndex: link.Attrs().Index, Parent: shapeRoot, Handle: shapeClass},
		netlink.HtbClassAttrs{Rate: uint64(p.Rate), Ceil: uint64(p.Rate), Buffer: burst, Cbuffer: burst, Quantum: wholeBurst},
	)
}

func leafBurst(p Path) uint32 {
	if p.Rate < segmentBelow {
		return cutBurst
	}
	return wholeBurst
}

// addLeaf adds a TBF of leafRate, in the calling thread's namespace. Package netlink has no
// TCA_TBF_BURST, and passes the burst in ticks of 64 ns, at this rate 8,000 bytes each.
func addLeaf(link netlink.Link, parent, handle, limit, burst uint32) error {
	return setLeaf(link, parent, handle, limit, burst, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
}

// setLeaf adds a TBF, or with no flags changes one.
func setLeaf(link netlink.Link, parent, handle, limit, burst uint32, flags int) error {
	rate := leafRate.BytesPerSecond()
	req := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, flags|unix.NLM_F_ACK)
	req.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(link.Attrs().Index), Parent: parent, Handle: handle})
	req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("tbf")))
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	parms := nl.TcTbfQopt{Limit: limit}
	parms.Rate.Rate = math.MaxUint32 // see TCA_TBF_RATE64
	options.AddRtAttr(nl.TCA_TBF_PARMS, parms.Serialize())
	options.AddRtAttr(nl.TCA_TBF_RATE64, nl.Uint64Attr(rate))
	options.AddRtAttr(nl.TCA_TBF_BURST, nl.Uint32Attr(burst))
	req.AddData(options)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// offloadOff turns segmentation, receive aggregation and transmit checksums off on dev, in the calling
// thread's namespace.
func offloadOff(dev string) error {
	// The order matters: without checksums the kernel silently rejects TSO.
	for _, cmd := range []uint32{unix.ETHTOOL_STSO, unix.ETHTOOL_SGSO, unix.ETHTOOL_SGRO, unix.ETHTOOL_STXCSUM} {
		if err := ethtool.Set(dev, cmd, 0); err != nil {
			return err
		}
	}
	return nil
}
