// Package compare finds how the capacities of two senders' paths to one receiver
// relate, from nothing but the order in which their packets arrive.
package compare
