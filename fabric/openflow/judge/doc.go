// Package judge has what the codec of openflow is compared with: generated messages of every kind, ovs-ofctl, which prints them,
// and os-ken, which parses them and serialises them again. It is for tests and for "headgate bench fabric".
//
// Both have limits. Kinds of messages that one of them does not have are in NotByOVS and NotByOSKen, with the reason; what
// ovs-ofctl prints otherwise than openflow, and why, is in ovs.go.
package judge
