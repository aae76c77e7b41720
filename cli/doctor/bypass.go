package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"headgate/shaper/attach"
)

// What no qdisc sees: traffic that goes past the kernel's own way of a packet, and so
// past every group.

// pciDrivers is where the drivers are that hand network cards to programs, which then
// are no devices of the kernel any more (DPDK, VPP, VMs with a card of their own).
const pciDrivers = "/sys/bus/pci/drivers"

// bypassed are the network cards that such drivers have.
func bypassed(drivers string) Check {
	c := Check{About: Machine, Name: "network cards", State: OK, Found: "all are the kernel's", Means: "what they carry can be divided"}
	const networkClass = "0x02"
	var cards []string
	for _, driver := range []string{"vfio-pci", "uio_pci_generic", "igb_uio"} {
		classes, err := filepath.Glob(filepath.Join(drivers, driver, "*:*", "class"))
		if err != nil {
			continue
		}
		for _, path := range classes {
			if class, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(class), networkClass) {
				cards = append(cards, filepath.Base(filepath.Dir(path))+" ("+driver+")")
			}
		}
	}
	if len(cards) == 0 {
		return c
	}
	slices.Sort(cards)
	c.State, c.Found = Limited, strings.Join(cards, ", ")
	c.Means = "a program or a VM has them for itself (DPDK and the like): no qdisc sees what they carry, and no group limits it"
	c.Remedy = "limit it in that program, on the card, or at the switch; count its share out of the limit of devices that share its link"
	return c
}

// passers are what of a device's own traffic no qdisc sees.
func passers(l netlink.Link) (out []Check) {
	a := l.Attrs()
	limited := func(name, found, means, remedy string) {
		out = append(out, Check{About: a.Name, Name: name, State: Limited, Found: found, Means: means, Remedy: remedy})
	}
	if n := len(a.Vfs); n > 0 {
		limited("SR-IOV", fmt.Sprintf("%d virtual functions", n),
			"the card itself switches what they carry: this device's qdisc does not see it, and no group of this device limits it",
			"divide each function where it is used, or its representor on this host; or \"ip link set "+a.Name+" vf N max_tx_rate MBIT\"")
	}
	if n := xdpSockets(a.Index); n > 0 {
		limited("AF_XDP", fmt.Sprintf("%d sockets", n),
			"what programs send and receive by them passes no qdisc and no filter, and belongs to no group", "limit it in those programs")
	}
	if flowtables, err := attach.Offloaded(a.Name); err == nil && len(flowtables) > 0 {
		limited("hardware offload", strings.Join(flowtables, ", "),
			"the card forwards the connections that it has been given: the kernel does not see their packets, and no group limits them",
			"take the device out of the flowtable, or the flag offload from it")
	}
	return out
}

// xdpSockets counts AF_XDP sockets of this network namespace on a device. A kernel
// that does not tell (CONFIG_XDP_SOCKETS_DIAG) has none for all we know.
func xdpSockets(index int) (n int) {
	list, err := netlink.SocketDiagXDP()
	if err != nil {
		return 0
	}
	for _, s := range list {
		if s.XDPInfo != nil && int(s.XDPInfo.Ifindex) == index {
			n++
		}
	}
	return n
}
