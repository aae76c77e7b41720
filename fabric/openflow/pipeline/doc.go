// Package pipeline is what an OpenFlow 1.3 switch does with a packet: it reads the fields of a frame, finds flows, executes their
// instructions and actions, and chooses buckets of groups (OpenFlow 1.3.5, ONF TS-023, sections 5.1 to 5.12).
//
// An Execution passes a packet through a Switch, which has the flows, groups, meters and ports, and counts and sends: package oftest
// is one. Tables are a Switch made of what a real one has reported, whose Trace returns the steps of a frame.
//
// Where the specification leaves freedom, or Open vSwitch departs from it, an Execution does what Open vSwitch 3.1 does on its
// userspace datapath, which the recordings of package oftest show.
//
// # Out of scope
//
// There are no MPLS and PBB actions, actions of experimenters, output to NORMAL, and metering. They are given to Switch.Skip. The
// checksum of SCTP is not updated.
package pipeline
