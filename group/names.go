package group

import "slices"

// Names are the alternative names of a machine's devices, by the kernel's ("ip link property add
// dev eth0 altname enp0s3"). A document may name a device by any of them.
type Names map[string][]string

// Kernel is the kernel's name of the device that somebody calls name. What is no alternative name
// stays as it is.
func (n Names) Kernel(name string) string {
	for dev, all := range n {
		if slices.Contains(all, name) {
			return dev
		}
	}
	return name
}

// Takes tells whether dev, a name or a pattern, is for the device that the kernel calls so. No name
// of a device that no pattern takes in makes one take it in.
func (n Names) Takes(dev, kernel string) bool {
	return Takes(dev, kernel) || (!IsPattern(dev) || Takes("*", kernel)) &&
		slices.ContainsFunc(n[kernel], func(name string) bool { return Takes(dev, name) })
}

// Of finds the document that a device is divided by, of those for these names and patterns: the one
// that names it as the kernel does, or by another name, or else the first whose pattern takes it
// in. -1 is none.
func (n Names) Of(kernel string, documents []string) int {
	for _, is := range []func(dev string) bool{
		func(dev string) bool { return dev == kernel },
		func(dev string) bool { return !IsPattern(dev) && n.Takes(dev, kernel) },
		func(dev string) bool { return n.Takes(dev, kernel) },
	} {
		if i := slices.IndexFunc(documents, is); i >= 0 {
			return i
		}
	}
	return -1
}
