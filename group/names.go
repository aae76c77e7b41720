package group

import "slices"

// AltNames maps the kernel's name of each device to its alternative names ("ip link property add
// dev eth0 altname enp0s3"). A document may name a device by any of them.
type AltNames map[string][]string

// Kernel returns the kernel's name of the device with this alternative name. Other names are
// returned unchanged.
func (n AltNames) Kernel(name string) string {
	for dev, all := range n {
		if slices.Contains(all, name) {
			return dev
		}
	}
	return name
}

// MatchesDevice reports whether dev, a name or a pattern, applies to the device with this kernel name,
// or to one of its alternative names. A device that no pattern may match is not matched through
// its alternative names either.
func (n AltNames) MatchesDevice(dev, kernel string) bool {
	return MatchesDevice(dev, kernel) || (!IsPattern(dev) || MatchesDevice("*", kernel)) &&
		slices.ContainsFunc(n[kernel], func(name string) bool { return MatchesDevice(dev, name) })
}

// Of returns the index of the document that configures a device, given the names and patterns
// of all documents. An exact kernel name precedes an alternative name, which precedes the first
// pattern that matches. Of returns -1 if there is none.
func (n AltNames) Of(kernel string, documents []string) int {
	for _, is := range []func(dev string) bool{
		func(dev string) bool { return dev == kernel },
		func(dev string) bool { return !IsPattern(dev) && n.MatchesDevice(dev, kernel) },
		func(dev string) bool { return n.MatchesDevice(dev, kernel) },
	} {
		if i := slices.IndexFunc(documents, is); i >= 0 {
			return i
		}
	}
	return -1
}
