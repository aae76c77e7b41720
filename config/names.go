package config

import (
	"fmt"
	"slices"

	"headgate/group"
)

// Named is the set on a machine whose devices have these alternative names, by the
// kernel's names: a document that names a device by one of them is about that
// device, and so is a pattern that one of them matches. Its error is a Mistakes
// that tells which device is named twice; the set is then without its second
// document's meaning.
func (s Set) Named(names group.Names) (Set, error) {
	s.names = names
	s.Interfaces = slices.Clone(s.Interfaces)
	var mistakes Mistakes
	for n := range s.Interfaces {
		i := &s.Interfaces[n]
		dev := names.Kernel(i.Dev)
		if dev == i.Dev {
			continue
		}
		if other := slices.IndexFunc(s.Interfaces, func(o Interface) bool { return o.Dev == dev }); other >= 0 {
			_, line, column := i.Where("dev")
			mistakes = append(mistakes, Mistake{i.File, line, column, "dev", fmt.Sprintf(
				"%q is another name of %q, which is divided in %s already: write both directions in one document", i.Dev, s.Interfaces[other].Called(), s.Interfaces[other].Name())})
			continue
		}
		i.written, i.Dev = i.Dev, dev
	}
	if len(mistakes) > 0 {
		return s, mistakes
	}
	return s, nil
}

// Called is the device as the document names it: Named may have given Dev another
// of its names.
func (i Interface) Called() string {
	if i.written != "" {
		return i.written
	}
	return i.Dev
}
