// Package frames makes the frames of packets that an operator writes: "tcp 10.0.0.1:1000 10.0.0.2:80" from a host of a network.
//
// The words are those of group.ParsePacket, and those that only a frame needs. What is not written follows from the network: the
// addresses of the sender, and the MAC of the host that has the destination's address.
package frames
