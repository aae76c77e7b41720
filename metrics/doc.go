// Package metrics exports the state of Headgate to Prometheus. The collectors read the state at each scrape
// and store nothing. Names follow https://prometheus.io/docs/practices/naming: base units, and _total for
// counters.
package metrics
