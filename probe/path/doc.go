// Package path measures all properties of a path in one result, in the order that sends
// the least: first the capacity, which the others need; then the token rate and bucket
// size, whose trains also show the limiter type; then the available bandwidth. Its Method
// has the same form as each single method: Next returns the next train for the samples so
// far, Estimate the result. So it works over a real path, a simulated path and a log.
package path
