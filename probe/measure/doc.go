// Package measure carries out the measurement of a path: it opens a session with a peer, sends the trains
// that an estimator asks for, writes the samples to a log, and returns the report. It also compares the
// paths of several senders, measures with the packets of a second sender as the clock, watches a limiter,
// serves the requests of a mesh, and repeats estimates from a log.
//
// The package prints nothing and estimates nothing: estimators are in packages beside it. Rates are bit/s
// and sizes are bytes, both of layer 2.
package measure
