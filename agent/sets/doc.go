// Package sets runs the sets of connections that controllers want of this host, as "headgate
// collective run" runs those of a file.
//
// They run in the agent's process and not in one of their own. Of a process of its own an agent
// that was killed or upgraded would have to find again which one it is, of what version and with
// which sets; here a document that changes touches its own set and no other, and what runs is
// what the agent is. The price is small: when the agent ends, caps end within a second of a
// connection's next packet, no packet is lost by that, and what connections need is learnt anew.
// What is attached in the kernel stays meanwhile, so that the next agent has their connections.
//
// A set that a program of this host runs under the same name stays with that program.
package sets
