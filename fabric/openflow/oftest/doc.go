// Package oftest is an OpenFlow 1.3 switch in memory for tests of controllers, and networks of such switches with hosts.
//
// What a packet meets in a switch is of package pipeline, which product code uses, too; a Switch adds what checks, counts, limits and
// times. Where the specification (OpenFlow 1.3.5, ONF TS-023) leaves freedom, or Open vSwitch departs from it, a Switch does what
// Open vSwitch 3.1 does on its userspace datapath. What a real one answered to lists of messages and frames is recorded in
// testdata (record.sh, which needs neither root nor a network), and a test replays it. The differences are listed in
// replay_test.go. Facts that only the recordings show: an error has the whole refused message; the action set is executed
// although a later table has no flow that matches; a packet-in has the whole packet whatever its max_len; a pushed VLAN
// tag has id 0; a replaced flow keeps its counters, a changed group or meter does not; a port-mod is not reported to its
// sender.
//
// # Time
//
// All times are those of package time, so a test within a bubble of testing/synctest owns them. One lock protects all
// switches and hosts of a Network; events of one time run in the order in which they were caused. Goroutines exist only
// for channels to controllers, and wait only for channels, timers and the connection.
//
// # Streams
//
// A Stream is many packets that are not sent one by one: Network.Advance computes what passes in a time, with meters as
// token buckets and cables as FIFO queues that drop in proportion. It is exact to a packet if a bucket has two packets or
// more.
//
// # Out of scope
//
// There are no buffers, bundles, queues, MPLS or PBB actions, output to NORMAL, TLS and auxiliary connections. The meter
// of packets to the controller is configured but passes all. The checksum of SCTP is not updated.
package oftest
