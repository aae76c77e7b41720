// Package local is the client for requests from a program to the agent of its host, over the
// agent's Unix socket: assign a connection of the program to a group, or unassign it.
//
// The program passes the connection's descriptor, from which the agent reads the addresses, so that
// a program can make requests only for connections that it has. The permissions of the program's
// user are configured with join in the group's configuration.
//
// Programs in other languages send JSON: docs/service.md describes the protocol.
package local
