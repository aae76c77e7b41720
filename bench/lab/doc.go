// Package lab is the bench of the lab itself ("headgate bench lab"): whether emulated links have their
// configured properties, with real traffic, and what they cost. All other benches depend on it.
//
// Rates, losses and delays are measured at the receiver, by the kernel's counters and timestamps, not
// by the emulator's own. Queues and limiters are checked against their definitions packet by packet
// (definition.go), from the release log of a run with real traffic. TCP with random loss is compared
// with the PFTK formula (formula.go), which is independent of links.
//
// The lab reports links whose emulator was late; here the values of such a run have a note.
package lab
