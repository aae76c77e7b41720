// Package path measures all of a path in one answer, in the order that spends least:
// the capacity, which the others need; the token rate with its bucket, whose trains
// also show the kind of limiter; the available bandwidth between them. It is a
// method like each of them: from the samples so far to the next train, and to the
// answer. So it runs over a real path, a simulated one and a log.
package path
