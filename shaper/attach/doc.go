// Package attach is where an engine's programs hang: the two filter hooks of a
// device (clsact), what else stands there, the connections that are assigned on
// it, and the lock under which all of it is changed. Every engine uses it, so that
// they find, refuse and leave alone the same things, and can tell each other's
// devices from their own.
//
// A device belongs to the engine whose record its program carries
// (classifier.Record). An engine sees another's programs as Device.Other and
// nothing else, and changes none of them.
package attach
