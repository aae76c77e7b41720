// Package network is a controller's side of the switches of a network: it accepts their OpenFlow channels, and lends them to
// the loop of fabric/live while this controller is the leader.
//
// Every controller accepts switches, and a switch connects to all of them. A channel lives as long as its connection: terms of
// leaders begin and end over it. While another controller is the leader, this one is a slave of the switch (OpenFlow 1.3.5,
// section 6.3.6): it reads and changes nothing. When its own term begins, it becomes the master with the generation of the
// term, and the switch makes a slave of the master before. So a leader that was stopped, and wakes without knowing that its
// term is over, changes nothing in a switch that knows the next leader: the switch refuses its messages, and its older
// generation.
//
// What switches forward does not depend on all this: flows stay in a switch when its channels end.
//
// Who may connect is in the configuration of the network. At a listener with TLS a switch has a certificate whose name is its
// datapath id, signed by an authority that signs for nothing else (docs/decisions, 37), so that it is the switch that it claims
// to be. At one without, whoever reaches the address can pose as any switch that may connect.
package network
