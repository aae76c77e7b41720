// Package scenario describes what "headgate demo" runs: the network of namespaces, the
// groups of each host, the flows, and their demand in each phase. Package demo runs it.
//
// It is data and functions over it: nothing here touches a kernel or the clock. Rates are
// layer-2 bits per second; times count from the start of the traffic.
package scenario
