// Package sites is the network, the traffic and the promises of "headgate demo --network": two sites of hosts, with two long paths between them,
// of which one is weaker than its port says and the other loses packets. What it has follows from a seed. Package demo runs it.
//
// Rates are layer-2 bits per second. The package is pure: it creates nothing.
package sites
