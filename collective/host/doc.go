// Package host controls the connection sets of this machine. It reads their connections
// from collective/sockops, gets the caps from package collective, and puts the caps in
// force.
//
// A Host looks at the connections every Tick. Each look renews the caps, which expire
// lease after the last look. A killed process therefore restricts no connection: its eBPF
// programs lift the caps, and stay attached until the next process with the same name, or
// Clear.
package host
