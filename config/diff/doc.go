// Package diff lists the differences between two configurations, and formats lists of changes as text. The changes
// can also be those between a configuration and a device, from package rollout.
//
// It compares parsed configurations only, and reads no device.
package diff
