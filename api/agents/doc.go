// Package agents is the protocol between agents and controllers: gRPC, made from agents.proto.
package agents
