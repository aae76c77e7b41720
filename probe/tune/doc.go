// Package tune proposes a limit from the measurement of a path. The limit is a little
// below the token rate, so that the queue forms at the device, where groups divide the
// bandwidth, and not at the provider, which drops packets.
//
// The package evaluates an answer of package path. It does not access devices or
// configurations.
package tune
