package server

import (
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
)

// setOrigins sets the origins of the groups of the next document: a group that exists already keeps its
// origin, whoever changes it, and a new group gets the given one.
func setOrigins(before, next *store.Interface, created group.Origin) {
	for _, direction := range directions {
		is := next.Direction(direction)
		if is == nil {
			continue
		}
		var was []group.Group
		if d := before.Direction(direction); d != nil {
			was = d.Groups
		}
		setGroupOrigins(was, is.Groups, created)
	}
}

func setGroupOrigins(was, is []group.Group, created group.Origin) {
	byName := make(map[string]*group.Group, len(was))
	for n := range was {
		byName[was[n].Name] = &was[n]
	}
	for n := range is {
		g := &is[n]
		g.Origin = created
		var children []group.Group
		if same := byName[g.Name]; same != nil {
			g.Origin, children = same.Origin, same.Groups
		}
		setGroupOrigins(children, g.Groups, created)
	}
}
