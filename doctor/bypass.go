package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/shaper/attach"
)

// Checks for traffic that bypasses the kernel's network stack, and so all qdiscs and groups.

// pciDrivers is the directory of PCI drivers. Some of them pass network cards to programs,
// and the cards are no network devices of the kernel then (DPDK, VPP, PCI passthrough to VMs).
const pciDrivers = "/sys/bus/pci/drivers"

// passedThroughCards checks for network cards that are bound to such drivers.
func passedThroughCards(drivers string) Check {
	c := Check{About: Machine, Name: "network cards", State: OK, Found: "all have kernel drivers", Meaning: "groups can limit their traffic"}
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
	c.Meaning = "used directly by a program or a VM (DPDK and the like): their traffic passes no qdisc, and no group limits it"
	c.Remedy = "limit that traffic in the program, on the card, or at the switch; subtract its rate from the limit of devices that share its link"
	return c
}

// bypasses checks for traffic of a device that passes no qdisc.
func bypasses(l netlink.Link) (out []Check) {
	a := l.Attrs()
	limited := func(name, found, means, remedy string) {
		out = append(out, Check{About: a.Name, Name: name, State: Limited, Found: found, Meaning: means, Remedy: remedy})
	}
	if n := len(a.Vfs); n > 0 {
		limited("SR-IOV", fmt.Sprintf("%d virtual functions", n),
			"the card switches their traffic itself: it does not pass this device's qdisc, and no group of this device limits it",
			"configure groups where each function is used, or on its representor on this host; or \"ip link set "+a.Name+" vf N max_tx_rate MBIT\"")
	}
	if n := xdpSockets(a.Index); n > 0 {
		limited("AF_XDP", fmt.Sprintf("%d sockets", n),
			"their traffic passes no qdisc and no filter, and belongs to no group", "limit it in the programs that use them")
	}
	if flowtables, err := attach.Offloaded(a.Name); err == nil && len(flowtables) > 0 {
		limited("hardware offload", strings.Join(flowtables, ", "),
			"the card forwards offloaded connections itself: the kernel does not see their packets, and no group limits them",
			"remove the device from the flowtable, or the flag offload from the flowtable")
	}
	return out
}

// xdpSockets counts AF_XDP sockets of this network namespace on a device. It returns 0 if
// the kernel cannot list them (CONFIG_XDP_SOCKETS_DIAG).
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
