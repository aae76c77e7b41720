// Package switching is the bench of the bwaas seed's chapter VI, a survey of virtual
// switches: three machines, VM1, VM2 and PM, whose iperf3 sends in a ring, VM1 to
// VM2 to PM to VM1, each the same rate, through what joins them on one host. What is
// counted is the processor time that this takes, and what of the rate is confirmed on
// each hop. The seed's table A.6 is beside the code as it is printed (seed.txt).
//
// The seed has the Xen bridge and Open vSwitch, from 5 to 55 Mbit/s. Here are the
// Linux bridge and Open vSwitch, a host that routes, a bridge with Headgate's groups
// on, and for comparison no switch at all; and rates far beyond.
//
// Each file is one idea:
//
//	survey.go    what is measured: sites, rates, claims
//	sites.go     what the packets pass: bridge, routed veth, no switch
//	openvswitch.go  a private Open vSwitch
//	ring.go      three iperf3 at once, and what they confirm
//	busy.go      processor time
//	seed.go      the seed's table
//	plots.go     the seed's figures VI.2 to VI.5, and beyond
//
// Where it departs from the seed: namespaces of one kernel instead of Xen domains, so
// that the work of a switch is done in the sender's or the receiver's name and
// cannot be told from theirs (which is why no switch at all is measured, too); and a
// PM on the same machine. It says how switches of a kernel of today compare, not
// what Xen cost.
package switching
