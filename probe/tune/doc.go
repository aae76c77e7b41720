// Package tune makes limits of what was measured of a path: a little under the token rate, so that
// the queue is where groups divide it, and not with the provider, who drops.
//
// It reads an answer of package path, and knows neither devices nor configurations.
package tune
