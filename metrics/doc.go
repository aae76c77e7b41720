// Package metrics gives what parts of Headgate are doing to Prometheus: its collectors ask
// for the state as they are asked, and keep nothing. Names follow
// https://prometheus.io/docs/practices/naming: base units, _total for what only grows.
package metrics
