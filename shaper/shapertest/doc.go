// Package shapertest is the suite that every engine passes: what package shaper
// promises, on real devices in network namespaces, with real packets.
//
//	client ──────────── router ──────────── server
//	        10.0.0.0/24         10.0.1.0/24   └─ device "router": the engine's
//	        fd00::/64           fd00:0:0:1::/64
//
// Headgate runs in the server, so out is what the server sends. The router hop is
// there because TCP's small-queue back-pressure crosses veth on one host (package
// lab). Every case has a rig of its own and leaves nothing.
//
// An engine's test calls Run from a test and Main from TestMain: some cases apply a
// plan in another process, which is then killed, and that process is the test
// binary itself.
//
// As root a case fails when something is missing; without root all are skipped.
// What a case tolerates stands beside its assertion.
package shapertest
