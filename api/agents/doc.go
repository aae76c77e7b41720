// Package agents is the gRPC protocol between agents and controllers, generated from agents.proto.
package agents
