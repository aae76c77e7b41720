// Package simtest has what the tests of several estimators share: a runner of a method over a
// simulated path, the paths of the estimation seed, and the faults of real hosts. It is for tests
// only. Sizes are bytes and rates are bit/s of layer 2.
package simtest
