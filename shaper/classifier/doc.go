// Package classifier turns a direction's rules into the tables that the eBPF
// classifier (bpf/classify.h) looks packets up in, and loads it. Both engines
// use it.
//
// Rules are found by tuple space search (Srinivasan, Suri, Varghese, "Packet
// Classification using Tuple Space Search", SIGCOMM 1999): the bwaas seed walks
// a list of connections for each packet (appendix B, findOutgoingGroup); here
// the cost of a new flow is one hash lookup for each combination of fields that
// the rules use, and of a known flow one lookup in all. group.Tree.Classify is
// the slow, obvious oracle beside it.
//
// It does not follow tunnels (the outer header counts), nor connections across
// address translation.
package classifier
