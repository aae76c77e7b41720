// Package openflow encodes and decodes the messages of OpenFlow 1.3 (wire version 4): functions from bytes to values
// and back, without sockets and clocks.
//
// The source is the OpenFlow Switch Specification 1.3.5 (ONF TS-023, 2015), section 7. Comments name its structures and
// subsections. Section 7.n is appendix A.n of version 1.3.0. Bundles are those of "Bundle extension for OpenFlow 1.3" (ONF EXT-230).
//
// # Messages
//
// Append writes a message with its header, Decode reads one, and Length divides a stream into messages. Each
// structure of the specification is described once, in a function that passes over its fields in both directions
// (codec), so that what is written can be read. Multipart bodies, match fields, instructions, actions and meter bands
// are values inside of messages; a Reassembler joins the parts of multipart replies.
//
// The zero value of a field is 0 on the wire, which often means something: set Buffer to NoBuffer, OutPort to PortAny
// and OutGroup to GroupAny in a FlowMod, and WatchPort and WatchGroup likewise in a Bucket.
//
// # What a message may contain
//
// Decode checks the format: types, lengths and the limits of each structure. It refuses all else with the message, the
// field and its offset, and allocates up to 16 times the bytes of a message (TestMemory; 81 times when lists grew by
// doubling). Bytes without a meaning are ignored, and written as zeros. Messages, match fields, instructions, actions,
// bands and properties of unknown types or of experimenters are kept as bytes, and written again as they were;
// DecodeCount counts them. Append refuses what Decode would.
//
// Whether a switch accepts a message is not decided here, apart from Match.Check: prerequisites, values and masks of
// fields are the same for all switches, while tables, groups, meters and actions differ.
//
// # Text
//
// String gives messages in the words of ovs-ofctl: "priority=100,ip,nw_dst=10.1.0.0/16 actions=meter:7,output:2".
// A message is not parsed from text.
//
// # Tests
//
// Two other implementations judge the bytes of generated messages of every kind: ovs-ofctl prints them, and
// os-ken parses and serialises them (package judge, which lists what they cannot judge). Decoding
// takes 33 ns (barrier) to 360 ns (a flow with its counters) of a processor, 30 to 2.8 million messages/s, with 1 to 10
// allocations (BenchmarkDecode, AMD EPYC).
//
// # Out of scope
//
// Connections and TLS, the order of messages, answers to requests, roles and what a switch does with a message belong
// to the session and the switch. Other versions of OpenFlow, and extensions other than bundles, are not decoded.
package openflow
