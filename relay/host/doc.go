// Package host runs a relay agent: streams to other agents, and the applications' connections that they carry
// (package stripe). At one end a connection comes from an application, at the other it goes to its destination.
//
// An application's data is acknowledged by the agent before the destination has it, as with every proxy that ends
// TCP connections.
package host
