package diff

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/text"
)

// Entry is the changes of one device, or of one connection set.
type Entry struct {
	Dev     string         `json:"dev,omitempty"`
	Set     string         `json:"set,omitempty"`
	Engine  group.Engine   `json:"engine,omitempty"`
	Changes []group.Change `json:"changes"`
}

// Compare returns the differences between two configurations of a host: an entry for each interface in either of
// them, and for each connection set in after. An entry without changes is that of an unchanged object.
func Compare(before, after config.Set) []Entry {
	return append(CompareInterfaces(before, after), compareSets(before, after)...)
}

// CompareInterfaces is Compare without connection sets.
func CompareInterfaces(before, after config.Set) []Entry {
	list := []Entry{}
	find := func(set config.Set, dev string) (config.Interface, bool) {
		i := slices.IndexFunc(set.Interfaces, func(i config.Interface) bool { return i.Dev == dev })
		if i < 0 {
			return config.Interface{}, false
		}
		return set.Interfaces[i], true
	}
	add := func(dev string, engine group.Engine) {
		was, had := find(before, dev)
		is, has := find(after, dev)
		e := Entry{Dev: dev, Engine: engine, Changes: []group.Change{}}
		if had && has {
			e.Changes = append(e.Changes, group.DiffSettings(was.Interface, is.Interface)...)
		}
		e.Changes = append(e.Changes, group.Diff("out", was.OutTree, is.OutTree)...)
		e.Changes = append(e.Changes, group.Diff("in", was.InTree, is.InTree)...)
		e.Changes = append(e.Changes, group.DiffTenants(was.Interface, is.Interface)...)
		list = append(list, e)
	}
	for _, i := range after.Interfaces {
		add(i.Dev, i.Engine)
	}
	for _, i := range before.Interfaces {
		if _, kept := find(after, i.Dev); !kept {
			add(i.Dev, i.Engine)
		}
	}
	return list
}

func compareSets(before, after config.Set) (list []Entry) {
	for _, c := range after.Collectives {
		e := Entry{Set: c.Name, Changes: []group.Change{}}
		i := slices.IndexFunc(before.Collectives, func(b config.Collective) bool { return b.Name == c.Name })
		switch {
		case i < 0:
			e.Changes = append(e.Changes, group.Change{Verb: "add", Object: "set " + c.Name})
		case !bytes.Equal(config.FormatCollective(before.Collectives[i].Policy), config.FormatCollective(c.Policy)):
			e.Changes = append(e.Changes, group.Change{Verb: "change", Object: "set " + c.Name})
		}
		list = append(list, e)
	}
	return list
}

// Write prints entries for people. An entry without changes is "up to date".
func Write(w io.Writer, list []Entry) error {
	for _, e := range list {
		name := e.Dev
		if e.Set != "" {
			name = "set " + e.Set
		}
		if len(e.Changes) == 0 {
			if _, err := fmt.Fprintf(w, "%s: up to date\n", name); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", name, text.Count(len(e.Changes), "change"))
		for _, change := range e.Changes {
			if _, err := fmt.Fprintf(w, "  %v\n", change); err != nil {
				return err
			}
		}
	}
	return nil
}
