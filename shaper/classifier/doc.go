// Package classifier compiles a direction's rules into the tables in which the eBPF classifier
// (bpf/classify.h) looks packets up, and loads the classifier. Both engines use it.
//
// Rules are found by tuple space search (Srinivasan, Suri, Varghese, "Packet Classification
// using Tuple Space Search", SIGCOMM 1999). The bwaas seed walks a list of connections for each
// packet (appendix B, findOutgoingGroup). Here, a new flow costs one hash lookup for each
// combination of fields that the rules use, and a known flow one lookup in total.
// group.Tree.Classify is the simple reference implementation.
//
// The classifier does not decapsulate tunnels (the outer header is matched), and does not
// follow connections across address translation.
package classifier
