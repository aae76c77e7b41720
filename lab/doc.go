// Package lab makes networks out of Linux network namespaces: hosts and routers
// joined by links, with addresses and routes of both IP versions, from a
// Topology that is written in Go or read from YAML (kind: Lab).
//
// A link has two directions, each of which is asked for by a link.Spec, and one of
// three backends (docs/decisions/0012-emulated-links.md). Where no more than a rate
// is asked it is a veth pair, with an HTB class on the sending device that enforces
// the rate in layer-2 bytes and a queue that is bounded in bytes and, below half a
// gigabit, cut into single segments (shape.go says why). Where the kernel's netem
// does what is asked and no super-packets are about, it is netem (netem.go). Else it
// is two TAP devices and an emulator in this process (package wire).
//
// Every path between a sender and a receiver should cross a router: on one host
// TCP's small-queue back-pressure reaches through veth and IFB, so that a sender
// sees a queue in another host's device as its own and never overruns it. A
// router's ip_rcv lets go of the sending socket (skb_orphan), as a wire would:
// one queue of 400 KB lost no segment without a router and 322 behind one
// (TestRouterBreaksBackPressure).
//
// Namespaces are named hg-LAB-NODE under /run/netns, so that ip netns exec works
// by hand; nothing here changes the mount namespace. A lab is written down in
// /run/headgate/lab/LAB.json before anything is made, and Down and Leftovers
// find there what a killed lab left.
//
// Run lets a topology's flows, programs and timeline happen and counts what every
// link did. It says when a run is not to be used, because an emulator was late.
//
// Sub-packages: traffic makes flows and measures them, meter times arrivals in the
// kernel, link is the model of a link, wire lets it act on frames. What is not here:
// switches. A node that is one (Open vSwitch, for the fabric) will be a third kind
// beside hosts and routers, in NodeSpec and Lab.makeNode; its links are as others.
//
// All needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN).
package lab
