// Package explain evaluates the rules and assignments of a device for one packet: which rule matches and where it
// was written, the group, and the kernel's class.
//
// It reads no kernel and no file. The caller passes the actual state, the configuration, or both. Matching is
// that of package group, against which the classifiers of the engines are tested.
package explain
