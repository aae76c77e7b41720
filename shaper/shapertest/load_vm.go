//go:build vm

package shapertest

import "headgate/unit"

// steady is what the machine carries without losing any of it: at 8 Mbit/s, 1,000 datagrams a second, an emulated
// processor that had to share its own lost 1 of 100, wherever they had to wait.
const steady = 1 * unit.Mbit
