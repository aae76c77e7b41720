// Package earlier is the classifier as another version of Headgate could have had it, with tables
// of other layouts: what tests and benches of an upgrade upgrade from. Nothing else uses it.
package earlier

//go:generate ../../../bpf/gen.sh earlier earlier.c

// Object is its ELF.
func Object() []byte { return _EarlierBytes }
