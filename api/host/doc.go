// Package host is a host of a service as a client of the API sees it, in the terms of the commands that act on the
// host itself: its desired state as a configuration, its groups and counters as states of devices, its assigned
// connections, and measurements by it.
//
// It prints nothing, and decides nothing that the service does not: the API is that of package client.
//
// Units: rates in layer-2 bits per second.
package host
