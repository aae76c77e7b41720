// Package redirect decides which TCP connections of a network relay agents carry, and which two agents (relay thesis, slides "Controller Handles Packet"
// and "Controller Informs Agents"). It is pure: agents, rules and the network go in, a choice comes out.
//
// A connection that a rule matches is carried by a near agent, which takes it from the client, and a far one, which connects to the server with the
// client's address and port. The near agent has chosen the far one: it is the exit to which it has streams, and whose destinations have
// the server. Of several pairs the one is chosen for which the client is nearest to the near agent and the server to the far one.
//
// The rules are those of the network's file, and before them those of reservations that relay agents carry. The latter name their agents, between
// which the bandwidth is reserved.
//
// Not everything that matches is carried. It goes direct, with a reason, if no pair of agents is there, if an agent is one of its ends, and if the
// agents are not in the VLAN of the client, because the network rewrites addresses and no tags.
package redirect
