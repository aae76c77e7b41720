// Package session is a controller's end of the OpenFlow channel to a switch (OpenFlow 1.3.5, section 6): the handshake,
// requests with their replies, changes with the errors that they cause, and whether the switch is alive. What goes over the
// wire is in package openflow.
//
// A Conn never blocks its user on a switch: what is sent waits in a bounded queue, and a switch that does not read is
// disconnected. A request whose answer somebody waits for does not wait there if its socket has room. Messages of the switch that answer nothing are handled one at a time, in the order of their arrival.
//
// The package has no listener and no TLS: who accepts connections decides which switches may connect, and passes on a net.Conn.
// Auxiliary connections (section 6.3.7) are refused.
package session
