// Package rollout compares a configuration with the devices of this machine, and applies it: all of it is compared
// before the first change, so that a mistake or foreign traffic control on one device prevents changes on all, and
// then one device after the other is changed. A change can be one that is rolled back unless it is confirmed in
// time (package pending).
//
// The agent has a loop of its own, for devices that appear and disappear: this package acts once, for a user.
//
// The engines and the means to list devices are passed to it (observe.Observer). It reads no files but those of
// package pending.
package rollout
