package group

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Tenants iterates over the groups that a configuration file gives to tenants: by direction and path ("out/web/shop"), those around
// others first.
func (i Interface) Tenants() iter.Seq2[string, string] {
	return func(yield func(at, tenant string) bool) {
		var walk func(all []Group, above string) bool
		walk = func(all []Group, above string) bool {
			for _, g := range all {
				at := above + "/" + g.Name
				if g.Tenant != "" && !yield(at, g.Tenant) || !walk(g.Groups, at) {
					return false
				}
			}
			return true
		}
		_ = (i.Out == nil || walk(i.Out.Groups, "out")) && (i.In == nil || walk(i.In.Groups, "in"))
	}
}

// DiffTenants returns the groups whose tenants differ between two configuration files.
func DiffTenants(was, is Interface) (out []Change) {
	before, after := map[string]string{}, map[string]string{}
	var all []string
	for _, side := range []struct {
		of Interface
		to map[string]string
	}{{was, before}, {is, after}} {
		for at, tenant := range side.of.Tenants() {
			side.to[at] = tenant
			all = append(all, at)
		}
	}
	slices.Sort(all)
	for _, at := range slices.Compact(all) {
		if before[at] != after[at] {
			direction, path, _ := strings.Cut(at, "/")
			out = append(out, Change{"change", direction + " group " + path, "tenant " + arrow(cmp.Or(before[at], "none"), cmp.Or(after[at], "none"))})
		}
	}
	return out
}
