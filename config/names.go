package config

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/group"
)

// WithAltNames returns the set for a machine whose devices have these alternative names. A document
// that names a device by an alternative name applies to that device, and so does a pattern that
// matches an alternative name. The error is an Errors that lists the documents whose device
// another document already configures.
func (s Set) WithAltNames(names group.AltNames) (Set, error) {
	s.names = names
	s.Interfaces = slices.Clone(s.Interfaces)
	var mistakes Errors
	for n := range s.Interfaces {
		i := &s.Interfaces[n]
		dev := names.Kernel(i.Dev)
		if dev == i.Dev {
			continue
		}
		if other := slices.IndexFunc(s.Interfaces, func(o Interface) bool { return o.Dev == dev }); other >= 0 {
			_, line, column := i.Where("dev")
			mistakes = append(mistakes, Error{i.File, line, column, "dev", fmt.Sprintf(
				"%q is an alternative name of %q, which is already configured in %s: write both directions in one document", i.Dev, s.Interfaces[other].WrittenDev(), s.Interfaces[other].Name())})
			continue
		}
		i.written, i.Dev = i.Dev, dev
	}
	if len(mistakes) > 0 {
		return s, mistakes
	}
	return s, nil
}

// WrittenDev returns the device name that the document uses, which may be an alternative name of
// Dev.
func (i Interface) WrittenDev() string {
	if i.written != "" {
		return i.written
	}
	return i.Dev
}
