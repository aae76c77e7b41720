// Package fabric is the bench "fabric": a network of OpenFlow switches that "headgate controller" finds, connects and repairs,
// beside Open vSwitch's rapid spanning tree and the applications of os-ken. The network is that of the command a user types:
// the controller is a process with its own store, and "headgate network show" says what it knows.
//
//	codec.go      messages against ovs-ofctl and os-ken; decode.go is the speed
//	discovery.go  until the network is known, which expected.go compares
//	connect.go    first pings (ping.go) and broadcasts (raw.go)
//	failover.go   gaps of traffic (stream.go) when a part fails
//	leader.go     controllers that fail; flows.go reads what the switches have
//	scale.go      a thousand switches in memory; minimal.go judges what a link's death changes
//	hostile.go    hosts and peers that attack; attacks.go is what they do
//	interop.go    a short suite on each datapath
//
// net.go has networks of real switches, bench/controllers the controllers, and peers.go the other methods. Switches in memory (memory.go) run
// in a child process (child.go), which parent.go starts.
package fabric

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/bench"
)

// Bench returns the bench with every row of targets.go.
func Bench(d *bench.Draw) bench.Bench {
	return bench.Bench{
		Name:  "fabric",
		Title: "A network of OpenFlow switches",
		About: about,
		Rows:  rows,
		Seed:  d.Seed(),
		Plots: plots,
		Tools: [][]string{{"ovs-vswitchd", "--version"}, {"ovs-ofctl", "--version"}, {"python3", "--version"}},
		Cases: slices.Concat(codecCases(), discoveryCases(), connectCases(), failoverCases(), leaderCases(), scaleCases(), hostileCases(), interopCases()),
	}
}

const about = `**Left out**: hardware switches, TLS between switch and controller, links above 1 Gbit/s, several networks on
one controller, a controller without its own store (--etcd), and VLANs. A smoke run (--quick) measures no peer, and not what
takes minutes: the fuzzers, and the kernel datapath in the virtual machine.

The controller is ` + "`headgate controller`" + `, a process with its own etcd, at its defaults. Real switches are bridges of one
Open vSwitch with the datapath in user space; all of them share one process and this machine's processors with everything
else, traffic included. Switches in memory are those of the tests (oftest), in a child process, connected by TCP.

Times count from before the cause: from before the command that sets the switches' controllers, from before the fault. They
end when a command that a user can type has printed the result, which adds its own run time of some 50 ms. Of several
measurements the worst counts, unless a claim says otherwise.

**os-ken** is its topology application (--observe-links), **os-ken STP** is simple_switch_stp_13 and **os-ken switch** is
simple_switch_13, which has no protection from loops and gets the network without its spare links. **RSTP** is Open vSwitch's,
without a controller. All are at their defaults.`

// together lets the cases with the same number of a row run at the same time in a smoke run.
func together(row string, n int) func(bool) string {
	return func(quick bool) string { return bench.Pick(quick, fmt.Sprint(row, n), "") }
}
