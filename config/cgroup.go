package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"headgate.dev/headgate/group"
)

// CheckCgroups reports every cgroup in the set that does not exist below mount. Its error is an
// Errors. The check is not part of Load, because a file may be validated on another machine
// than the one that uses it.
func (s Set) CheckCgroups(mount string) error {
	var mistakes Errors
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
			mistakes = append(mistakes, Error{file, line, column, key, message})
		})
	}
	if len(mistakes) > 0 {
		return mistakes
	}
	return nil
}

// HasCgroups reports whether any rule names a cgroup.
func (s Set) HasCgroups() bool {
	return slices.ContainsFunc(s.Interfaces, func(i Interface) (found bool) {
		if i.Out != nil {
			eachCgroup(i.Out.Groups, "out", func(string, string) { found = true })
		}
		return found
	})
}

// CgroupNotes remarks on the cgroups of relay agents' rules that do not exist below mount. A cgroup whose service does not
// run is no mistake: the agent leaves the rule out until it exists.
func (s Set) CgroupNotes(mount string) (out []Note) {
	for _, r := range s.Relays {
		for i, rule := range r.Take {
			if rule.Cgroup == "" {
				continue
			}
			if message := missingCgroup(mount, rule.Cgroup); message != "" {
				key := fmt.Sprintf("take[%d].cgroup", i)
				at := (&decoder{places: r.places}).place(key, position{line: r.Line, column: 1})
				out = append(out, Note{r.File, at.line, key, "the rule takes no connections until its cgroup exists: " + message})
			}
		}
	}
	return out
}

func eachCgroup(groups []group.Group, where string, f func(cgroup, key string)) {
	for i, g := range groups {
		here := fmt.Sprintf("%s.groups[%d]", where, i)
		for j, s := range g.Match {
			if s.Cgroup != "" {
				f(s.Cgroup, fmt.Sprintf("%s.match[%d].cgroup", here, j))
			}
			for _, n := range s.Not {
				if n.Cgroup != "" {
					f(n.Cgroup, fmt.Sprintf("%s.match[%d].not.cgroup", here, j))
				}
			}
		}
		eachCgroup(g.Groups, here, f)
	}
}

// otherMounts returns the mount points of other cgroup hierarchies, from text in the format of
// proc_pid_mounts(5).
func otherMounts(mount, mounts string) (out []string) {
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 2 && (f[2] == "cgroup" || f[2] == "cgroup2") && f[1] != mount && f[1] != "/" {
			out = append(out, f[1])
		}
	}
	return out
}

// missingCgroup returns the message for a cgroup that does not exist, or "".
func missingCgroup(mount, cgroup string) string {
	isDir := func(path string) bool { info, err := os.Stat(path); return err == nil && info.IsDir() }
	if isDir(filepath.Join(mount, cgroup)) {
		return ""
	}
	// The full path including the mount point, or a path of another hierarchy.
	if below, ok := strings.CutPrefix(cgroup, strings.TrimSuffix(mount, "/")+"/"); ok && isDir(filepath.Join(mount, below)) {
		return fmt.Sprintf("%q is the full path: write %q, which is the path below the cgroup2 mount at %s", cgroup, "/"+below, mount)
	}
	text, _ := os.ReadFile("/proc/self/mounts") // without it, no suggestion
	for _, other := range otherMounts(mount, string(text)) {
		if strings.HasPrefix(cgroup, other+"/") && isDir(cgroup) || isDir(filepath.Join(other, cgroup)) {
			return fmt.Sprintf("%q is a cgroup of another hierarchy, mounted at %s, and sockets are matched only by their cgroup v2, mounted at %s: write the cgroup v2 of the same processes, which follows \"0::\" in /proc/PID/cgroup", cgroup, other, mount)
		}
	}
	// The deepest existing parent, and the suggestion for the next path element.
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
		return fmt.Sprintf("cgroup %q does not exist below %s: did you mean %q?", cgroup, mount, filepath.Join(dir, meant, strings.TrimPrefix(rest, word)))
	}
	return fmt.Sprintf("cgroup %q does not exist below %s: start the service that creates it, or write one that \"systemd-cgls\" lists", cgroup, mount)
}
