package cgroup2

import (
	"os"
	"path"
	"path/filepath"
)

// Unit is the path, below the mount point, of the cgroup of a unit of the system's systemd,
// which is named for it (systemd.resource-control(5)); "" if the unit does not run, or nothing
// is mounted. Units of a user's own systemd, below user@1000.service, and those in a container
// are not found: they may have any name, that of a system's unit, too.
func Unit(name string) string {
	root, err := Mount()
	if err != nil {
		return ""
	}
	return unitIn(root, name)
}

// unitIn looks for the nearest, and only in slices: a unit is in the root or in a slice, and
// what is in any other cgroup is that unit's business (systemd.slice(5), Delegate=). That is
// also a few folders of what may be thousands.
func unitIn(root, name string) string {
	if name == "-.slice" {
		return "/"
	}
	for slices := []string{"/"}; len(slices) > 0; {
		var next []string
		for _, s := range slices {
			entries, _ := os.ReadDir(filepath.Join(root, s)) // it may have gone away meanwhile
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
