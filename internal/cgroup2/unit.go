package cgroup2

import (
	"io/fs"
	"path/filepath"
)

// Unit is the path, below the mount point, of the cgroup of a unit of systemd, which is named
// for it (systemd.resource-control(5)); "" if the unit does not run, or nothing is mounted.
func Unit(name string) (path string) {
	root, err := Mount()
	if err != nil {
		return ""
	}
	filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // it went away meanwhile
			return fs.SkipDir
		case !d.IsDir():
			return nil
		case d.Name() == name:
			if below, err := filepath.Rel(root, at); err == nil {
				path = "/" + below
			}
			return fs.SkipAll
		}
		return nil
	})
	return path
}
