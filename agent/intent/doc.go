// Package intent merges the desired state of a host's devices from several sources: local files first,
// then the controllers. It reads no files, connects to nothing and applies nothing; package agent keeps
// the result in force.
//
// A source that comes earlier takes precedence, for all names of a device: a document of a later source
// is a Problem, and has no effect, if an earlier document, or its pattern, configures the device. A
// later pattern stays in force for the devices that no earlier document configures.
package intent
