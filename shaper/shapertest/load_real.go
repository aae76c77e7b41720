//go:build !vm

package shapertest

import "headgate/unit"

// steady is what the machine carries without losing any of it.
const steady = 8 * unit.Mbit
