// Package doctor finds out what this kernel and machine can do for Headgate, and
// what is missing for what.
//
// It looks by trying: in a network namespace of its own, which nobody else sees
// and which ends with the thread that made it, it makes the very qdiscs, filters
// and devices that the engines make, loads small eBPF programs of the kinds they
// load, and at last lets the engine itself apply groups to a device. Version
// numbers and configuration options are asked only where there is nothing to try.
//
// Nothing stays: what was pinned is removed, and so are kernel modules that were
// loaded for the trial and that nobody uses. Devices of the user's are only read.
//
// Units: rates in bits per second, packets per second; times in their names.
package doctor
