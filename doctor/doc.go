// Package doctor detects which features of Headgate this kernel and machine support, and
// names remedies for missing ones.
//
// It detects features by trying them, in a network namespace of its own, which ends with
// the thread that created it. There it creates the same qdiscs, filters and devices as the
// engines, loads small eBPF programs of the same types, and finally has the engine apply
// groups to a device. Version numbers and configuration options are read only where there
// is nothing to try.
//
// Of this machine's Open vSwitch, if it has one, the doctor reads the database, and lists what
// keeps its bridges from being switches of a network (fabric.go).
//
// The doctor leaves nothing behind: it removes pinned objects, and unloads kernel modules
// that the trial loaded and that are not in use. The user's devices are only read.
//
// Units: rates in bits per second and packets per second; times have the unit in their names.
package doctor
