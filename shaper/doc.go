// Package shaper is the interface between desired state and the kernel that enforces it. A Plan
// is the desired state of a device. Apply makes the actual state the desired one from any
// previous state, changes only what differs, and is completed by the next Apply if it was
// interrupted. Observe reads the actual state from the kernel. Clear removes everything that
// Headgate created, and nothing else; it needs no stored history.
//
// Two engines implement Shaper and pass the same conformance tests (package shapertest): htb,
// the default, and quantum, the algorithm of the bwaas seed.
package shaper
