// Package switching is the bench of the bwaas thesis's chapter VI (docs/seeds.md), a survey of virtual
// switches: three machines, VM1, VM2 and PM, whose iperf3 send in a ring, VM1 to VM2 to PM to VM1, all
// at the same rate, through a switch on one host. It measures the processor time, and the received
// rate of each hop. seed.txt is the thesis's table A.6 as printed.
//
// The thesis has the Xen bridge and Open vSwitch, from 5 to 55 Mbit/s. This bench has the Linux bridge
// and Open vSwitch, a host that routes, a bridge with Headgate's groups, and for comparison no switch;
// and much higher rates.
//
// Each file has one part:
//
//	survey.go    what is measured: sites, rates, claims
//	sites.go     what the packets pass: bridge, routed veth, no switch
//	openvswitch.go  a private Open vSwitch
//	ring.go      three iperf3 in parallel, and the rates that they receive
//	busy.go      processor time
//	seed.go      the thesis's table
//	plots.go     the thesis's figures VI.2 to VI.5, and higher rates
//
// Differences from the thesis: namespaces of one kernel instead of Xen domains, so that the work of a
// switch is attributed to the sender or the receiver and cannot be separated from theirs (therefore no
// switch is measured as well); and a PM on the same machine. The results compare switches of a current
// kernel, not the cost of Xen.
package switching
