// Package circuits turns the reservations of a network into circuits of its switches, and keeps their limits: a Loop is the cycle
// of decision 39 (docs/decisions/0039-reservations.md) for the switches of one leader's term. What fabric/reserve/cycle decides is given
// to fabric/live.
//
// What is not reserved is limited where a switch sends it to another one by a link on which something is reserved. Traffic from a host to its
// switch, and from the last switch to a host, is not limited.
package circuits
