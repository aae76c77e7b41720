// Package lab creates networks of Linux network namespaces: hosts, routers and OpenFlow switches that
// are connected by links, with addresses and routes of both IP versions. A Topology, written in Go or
// read from YAML (kind: Lab), describes the network.
//
// A link has two directions, each specified by a link.Spec, and one of three backends
// (docs/decisions/0012-emulated-links.md). With a rate only it is a veth pair: an HTB class on the
// sending device enforces the rate in layer-2 bytes, with a queue that is bounded in bytes and, below
// 500 Mbit/s, segmented (see shape.go for the reason). With properties that the kernel's netem
// supports, and without super-packets, it is netem (netem.go). Otherwise it is two TAP devices and an
// emulator in this process (package wire).
//
// Every path between a sender and a receiver should cross a router. On one host TCP's small-queue
// back-pressure acts through veth and IFB: a sender counts packets in the queue of another host's
// device as its own, and never overflows that queue. A router's ip_rcv releases a packet from the
// sending socket (skb_orphan), as a wire would. One queue of 400 KB lost no segment without a router
// and 322 behind one (TestRouterBreaksBackPressure).
//
// Namespaces are named hg-LAB-NODE under /run/netns, so that ip netns exec works on them; this package
// does not change the mount namespace. A lab is recorded in /run/headgate/lab/LAB.json before it is
// created, so that Down and Leftovers can find what a killed process left.
//
// Run runs the flows, programs and timeline of a topology and counts the traffic of every link. It
// reports when a run is unusable because an emulator was late.
//
// A switch (SwitchSpec) is the third kind of end of a link: a bridge of an Open vSwitch that each lab
// with switches has for itself, with its datapath in user space (ovs.go, docs/decisions/0035-lab-switches.md).
// All switches of a lab share one namespace and one ovs-vswitchd. What is between nodes at connected
// switches is one network, without routers: TCP's back-pressure does not cross it, because the datapath
// copies each packet.
//
// Sub-packages: traffic creates and measures flows, meter timestamps arrivals in the kernel, link is
// the model of a link, wire applies it to frames.
//
// Everything requires root (CAP_NET_ADMIN and CAP_SYS_ADMIN).
package lab
