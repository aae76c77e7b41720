// Package host keeps the sets of connections of this machine in proportion: it reads them
// from collective/sockops, asks package collective what each may send, and caps them.
//
// It looks every tick. A cap is renewed with every look and ends by itself lease after the last,
// so that a process that is killed holds nobody back: what it attached lifts the caps, and
// stays until the next program of its name, or Clear.
package host
