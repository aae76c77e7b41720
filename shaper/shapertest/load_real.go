//go:build !vm

package shapertest

import "headgate.dev/headgate/unit"

// steady is a rate that the machine carries without losses.
const steady = 8 * unit.Mbit
