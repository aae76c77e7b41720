package classifier

import (
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/cgroup2"
)

// FindCgroups returns the IDs of the cgroups that a tree's rules name.
func FindCgroups(t group.Tree) (map[string]uint64, error) {
	ids := map[string]uint64{}
	for _, r := range t.Rules {
		for _, path := range r.Selector.Cgroups() {
			id, err := cgroup2.ID(path)
			if err != nil {
				return nil, err
			}
			ids[path] = id
		}
	}
	return ids, nil
}
