// Package local is what a program says to the agent of the host that it runs on, over its Unix
// socket: "put this connection of mine in that group", and "give it back".
//
// The program passes the connection's descriptor, from which the agent takes the addresses: a
// program can say nothing about a connection that it does not have. Whether its user may is said
// by join in the group's configuration.
//
// Other languages speak JSON: docs/service.md has the protocol.
package local
