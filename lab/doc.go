// Package lab makes networks out of Linux network namespaces: hosts and routers
// joined by links, with addresses and routes of both IP versions, from a
// Topology that is written in Go or read from YAML (kind: Lab).
//
// A link is a veth pair. Where a rate is asked, an HTB class on the sending
// device enforces it, in layer-2 bytes, with a queue that is bounded in bytes
// and, below half a gigabit, cut into single segments (shape.go says why). Where
// a delay is asked the link is two TAP devices and an emulator in this process
// (package wire), because not every kernel has netem.
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
// Sub-packages: traffic makes flows and measures them, meter times arrivals in
// the kernel, wire delays frames. What is not here: loss, jitter, queue
// disciplines, switches and netem; the link's Path is the place for them.
//
// All needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN).
package lab
