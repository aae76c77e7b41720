// Package shapertest is the conformance suite for engines: it tests the contract of package
// shaper on real devices in network namespaces, with real packets.
//
//	client ──────────── router ──────────── server
//	        10.0.0.0/24         10.0.1.0/24   └─ device "router": the engine's
//	        fd00::/64           fd00:0:0:1::/64
//
// Headgate runs on the server, so out is the traffic that the server sends. The router hop
// exists because TCP's small-queue back-pressure crosses veth on one host (package lab). Every
// case has a rig of its own and leaves nothing behind.
//
// An engine's test calls Run from a test and Main from TestMain: some cases apply a plan in
// another process, which is then killed, and that process is the test binary itself.
//
// As root, a case fails if a prerequisite is missing; without root, all cases are skipped.
// Tolerances are documented beside the assertions.
package shapertest
