// Package lab is the bench of the lab itself ("headgate bench lab"): whether
// emulated links are what they say, on real traffic, and what they cost. Every
// other bench stands on it.
//
// Rates, losses and delays are measured at the receiver, by the kernel's counts
// and timestamps and not by the emulator's own. Queues and limiters are held
// against their definitions packet by packet (definition.go), from the release
// log of a run with real traffic. TCP with random loss is compared with the PFTK
// formula (formula.go), which knows nothing of links.
//
// What the lab promises about itself: a link whose emulator was late is said to
// be; such a run's figures carry a note here.
package lab
