// Package live is the control loop over the switches that are connected: it finds links and hosts, and brings every switch to what
// connects them all.
//
// A Network is one loop on one lock. The readers of the switches' channels call it with what happens: a port that changes, a
// discovery frame, a frame of a host. It keeps what package fabric has learned, and makes of it a plan (program.Connectivity)
// whenever something has changed. Each switch has a goroutine that compares the plan with what the switch has, and sends the
// difference.
//
// # Links
//
// Discovery frames (LLDP, IEEE 802.1AB) go out of every port: of a new port every 100 ms until it is known what it is, of a port
// with a link every 400 ms, of others every 5 s. They have a code that only controllers of the network can make
// (HMAC-SHA256, RFC 2104), of the port and the time, so that a host cannot invent a link. A host with two ports can carry the
// frames from one to the other: that is a link, which it has made by its cables.
//
// A port belongs to hosts when no discovery frame has come to it for 300 ms after it came up. Before that, nothing of it is
// forwarded: a cable between two switches that is taken for a host's closes a loop.
//
// # Hosts
//
// Hosts are found by the frames that they send. ARP (RFC 826) and neighbour discovery (RFC 4861) go to the controller, which
// answers for hosts that it knows and asks at the ports of all hosts for others. So no question is flooded twice, and who
// claims another's address is seen. A frame of an unknown host reaches its destination through the controller, and makes the
// host known.
package live
