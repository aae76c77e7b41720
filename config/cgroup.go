package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"headgate/group"
)

// CheckCgroups tells of every cgroup in the set that does not exist below mount.
// Its error is a Mistakes. It is apart from Load because a file may be checked
// on another machine than the one that it is for.
func (s Set) CheckCgroups(mount string) error {
	var mistakes Mistakes
	for _, i := range s.Interfaces {
		if i.Out == nil {
			continue
		}
		eachCgroup(i.Out.Groups, "out", func(cgroup, key string) {
			message := missingCgroup(mount, cgroup)
			if message == "" {
				return
			}
			file, line, column := i.Where(key)
			mistakes = append(mistakes, Mistake{file, line, column, key, message})
		})
	}
	if len(mistakes) > 0 {
		return mistakes
	}
	return nil
}

// HasCgroups tells whether any rule names a cgroup.
func (s Set) HasCgroups() bool {
	return slices.ContainsFunc(s.Interfaces, func(i Interface) (found bool) {
		if i.Out != nil {
			eachCgroup(i.Out.Groups, "out", func(string, string) { found = true })
		}
		return found
	})
}

func eachCgroup(groups []group.Group, where string, f func(cgroup, key string)) {
	for i, g := range groups {
		here := fmt.Sprintf("%s.groups[%d]", where, i)
		for j, s := range g.Match {
			if s.Cgroup != "" {
				f(s.Cgroup, fmt.Sprintf("%s.match[%d].cgroup", here, j))
			}
		}
		eachCgroup(g.Groups, here, f)
	}
}

// missingCgroup is the message for a cgroup that does not exist, or "".
func missingCgroup(mount, cgroup string) string {
	if info, err := os.Stat(filepath.Join(mount, cgroup)); err == nil && info.IsDir() {
		return ""
	}
	// The deepest part that does exist, and what was meant below it.
	dir := filepath.Dir(cgroup)
	for dir != "/" {
		if _, err := os.Stat(filepath.Join(mount, dir)); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(cgroup, dir), "/")
	word, _, _ := strings.Cut(rest, "/")
	var names []string
	entries, _ := os.ReadDir(filepath.Join(mount, dir)) // no entries, no suggestion
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if meant := nearest(word, names); meant != "" {
		return fmt.Sprintf("there is no cgroup %q below %s: did you mean %q?", cgroup, mount, filepath.Join(dir, meant, strings.TrimPrefix(rest, word)))
	}
	return fmt.Sprintf("there is no cgroup %q below %s: start the service that makes it, or write one that \"systemd-cgls\" lists", cgroup, mount)
}
