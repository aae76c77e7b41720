// Package earlier is the classifier of a fictitious earlier version of Headgate, with maps of
// other layouts. It is used only as the starting point of upgrade tests and benchmarks.
package earlier

//go:generate ../../../bpf/gen.sh earlier earlier.c

// Object returns the ELF object.
func Object() []byte { return _EarlierBytes }
