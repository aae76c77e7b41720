// Package service is the agent as a whole. It joins the host's loop (package agent) with the local
// files, the metrics and the socket for programs, and on a host that has joined a service also with its
// controllers (agent/remote), the usage record (agent/record) and the connection sets (agent/sets).
// Nothing else joins them.
//
// Each part has a file: desired.go merges the desired state, readings.go keeps the counters, facts.go
// describes the host, measure.go runs measurements, sets.go reports connection sets, relays.go the relay
// agents that run on the host; controllers.go connects them to the stream. The package decides nothing about
// a device: agent/intent and agent do.
//
// Measurements and feature detection run as child processes, so that they do not disturb the loop.
//
// Units: rates are bits per second.
package service
