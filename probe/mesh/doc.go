// Package mesh makes several servers measure the paths between them, and collects the results. The first
// server of each pair measures both directions, at the request of this host. A host takes part in only one
// measurement at a time.
//
// The package sends no trains of its own, and prints nothing but Prometheus text. Rates are bit/s and sizes
// are bytes, both of layer 2.
package mesh
