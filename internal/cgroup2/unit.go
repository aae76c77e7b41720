package cgroup2

import (
	"os"
	"path"
	"path/filepath"
)

// Unit returns the path, below the mount point, of the cgroup of a unit of the system's systemd,
// which is named after the unit (systemd.resource-control(5)). It is "" if the unit does not run,
// or no hierarchy is mounted. Units of a user's systemd, below user@1000.service, and those in
// containers are not found: they may have any name, including that of a system unit.
func Unit(name string) string {
	root, err := Mount()
	if err != nil {
		return ""
	}
	return unitIn(root, name)
}

// unitIn finds the unit with the shortest path, and searches slices only: a system unit is in the
// root or in a slice, and the content of any other cgroup is controlled by that unit
// (systemd.slice(5), Delegate=). So the search reads a few directories of possibly thousands.
func unitIn(root, name string) string {
	if name == "-.slice" {
		return "/"
	}
	for slices := []string{"/"}; len(slices) > 0; {
		var next []string
		for _, s := range slices {
			entries, _ := os.ReadDir(filepath.Join(root, s)) // the cgroup may be removed meanwhile
			for _, e := range entries {
				switch at := path.Join(s, e.Name()); {
				case !e.IsDir():
				case e.Name() == name:
					return at
				case path.Ext(e.Name()) == ".slice":
					next = append(next, at)
				}
			}
		}
		slices = next
	}
	return ""
}
