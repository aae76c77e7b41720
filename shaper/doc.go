// Package shaper is the border between what a user wants and a kernel that
// enforces it. A Plan is desired state: Apply makes it so whatever was there
// before, touches only what differs, and is repaired by the next Apply if it is
// cut short; Observe reads back what the kernel has; Clear takes away all that
// is ours and nothing else, without memory of the past.
//
// Two engines implement Shaper and pass the same suite (package shapertest):
// htb, the default, and quantum, the bwaas seed's algorithm.
package shaper
