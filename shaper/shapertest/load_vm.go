//go:build vm

package shapertest

import "headgate.dev/headgate/unit"

// steady is a rate that the machine carries without losses. At 8 Mbit/s, 1,000 datagrams per
// second, an emulated processor on a busy machine lost 1 of 100 datagrams.
const steady = 1 * unit.Mbit
