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
// Discovery frames (LLDP, IEEE 802.1AB) go out of every port: of a port with a link every 500 ms (decision 0041), of others at intervals as
// long as the port is up, between 100 ms and 10 s. They have a code that only controllers of the network can make
// (HMAC-SHA256, RFC 2104), of the port and the time, so that a host cannot invent a link. A host with two ports can carry the
// frames from one to the other: that is a link, which it has made by its cables.
//
// After 700 ms without a discovery frame a link passes nothing, or the frames are late: the switches have much to do, or the controller
// has. They are asked (inquiry.go). The link is down when the switch that sends has answered an echo request after its last frame, and
// the one that receives has answered another after that. So a link that passes nothing is found within a second while both answer, and
// a controller or a switch that is late ends no link.
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
//
// # Switches that the controller does not reach
//
// A switch whose channel is closed or silent forwards as before, by the flows that it has, or has ended. Its neighbours are asked: the
// controller has them send it a frame each 100 ms, which it sends back as one of its rules says (program.Reflection). While one
// comes back, its links stay, until a minute after the network has changed in another place. A link over which none
// came back for 400 ms is down. So a switch that hangs is found within a second of its silence, and one that only the controller does
// not reach loses nothing.
//
// # Traffic
//
// The counters of all ports of a switch are read with one request, of each switch once a second, and of more than 200 switches
// 200 each second. A link has the rate between the last two readings of the port that sends. The loop keeps a history of
// each port in memory (fabric.History).
//
// # Circuits
//
// SetCircuits is the desired state of reservations. A change is compared with the circuits before it, and only switches for which there is a
// difference compare their flows. It is made in three steps: switches after the first get new paths, the first ones send by them, and the
// old ones end a quarter of a second later. SetLimits changes meters alone, and ReadCircuits reads them. A meter that changes begins to count at 0: its
// counters are requested in front of the change, in one piece with it, and are added up.
//
// # Switches
//
// A switch is asked what it can do when it connects (fabric.Capabilities), and gets the form of the pipeline for it. What it
// refuses is the problem of the switch, and the rest of its changes are made.
//
// A frame to an unknown host goes to all ports of hosts, within bounds of each port and of all (floods.go). Of a switch
// session.MaxPorts ports are used.
//
// A port that floods the controller slows no other: a meter of the switch bounds what each port sends to the controller, or a
// rule drops it for a time (buckets.go). A frame that the controller drops takes 0.6 us of a processor, with its decoding: 20,000
// per second take 1 % (BenchmarkFlood, AMD EPYC).
//
// Bundles (ONF EXT-230) are not used. What they would make atomic is in an order already in which no frame meets a reference to
// what is not set yet, and a change concerns many switches, over which no bundle reaches. In a bundle one rule that is refused
// keeps all others from the switch, Open vSwitch takes no meters in it, and a flow-mod takes 104 bytes and 480 ns to encode
// instead of 80 bytes and 370 ns (BenchmarkAppend).
package live
