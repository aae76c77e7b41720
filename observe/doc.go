// Package observe reads the actual state of the devices of this machine, whichever engine shapes them: their
// configuration in force, counters, owner, assigned connections and clients.
//
// It changes nothing. The engines and the means to list devices are passed to it.
package observe
