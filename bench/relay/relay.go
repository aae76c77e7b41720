// Package relay is the bench "relay": direct TCP, multipath TCP, a splitting proxy, the thesis's scheme and Headgate's
// relay compared with each other on emulated links. The thesis is in docs/seeds.md.
package relay

import (
	"slices"

	"headgate.dev/headgate/bench"
)

// Bench returns the bench with every row of targets.go.
func Bench(d *bench.Draw) bench.Bench {
	return bench.Bench{
		Name:  "relay",
		Title: "Connections over long, lossy and several paths",
		About: about,
		Rows:  rows,
		Seed:  d.Seed(),
		Plots: plots,
		Tools: [][]string{{"haproxy", "-v"}, {"ip", "-V"}, {"nft", "--version"}},
		Cases: slices.Concat(throughputCases(), []bench.Case{fadeCase(), overUseCase()}, shortCases(), []bench.Case{blockCase()}, costCases(), []bench.Case{fairCase(), wholeCase()}, appCases()),
	}
}

const about = `**Left out**: 10 Gbit/s, more than two paths, paths whose loss is not independent, other traffic on the
paths (except in fair), and IPv6. A smoke run (--quick) measures no peer.

The network is four namespaces. The paths are emulated, with a queue of one round-trip time, 50 ms at least:

    client ── entry ══ one or two paths ══ exit ── server

The entry and the exit are ` + "`headgate relay run`" + ` with the transparent way in: the client connects to the server's
address, and the server sees the client's. Streams are encrypted unless a case says otherwise. Nothing is tuned.
The streams have been open for 2 s when the connection is opened.

Rates are goodput as full frames, which read 100 % of the link's rate when 1,448 of each 1,514 bytes are
payload, and count from the tenth second to the fortieth: the steady state. The notes have the rate from the first
second on.

**direct CUBIC** and **direct BBR** are one connection between client and server over the first path, with buffers
that the kernel tunes up to 128 MiB; **default CUBIC** has Debian's limits of 6 MiB and 4 MiB. **MPTCP** is the
kernel's, CUBIC, between entry and exit, which have the addresses, with the same buffers. **splitting proxy** is HAProxy
at the entry, transparent, over the first path. **thesis** is ` + "`engine: sos`" + `, unencrypted, with the thesis's best
number of streams in that row, CUBIC, and a queue of 1,000 or 10,000 packets.`
