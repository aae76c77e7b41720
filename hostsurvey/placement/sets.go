package placement

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/cgroup2"
)

// Sets returns warnings about cgroups, units and users that the connection sets of a configuration name and
// that do not exist on this machine. A set waits for a missing cgroup, but is rejected for a missing user.
func Sets(set config.Set) (out []Warning) {
	for _, c := range set.Collectives {
		warn := func(key, format string, args ...any) {
			out = append(out, Warning{c.File, c.Line, key, fmt.Sprintf(format, args...)})
		}
		switch {
		case c.Unit != "":
			if cgroup2.Unit(c.Unit) == "" {
				warn("unit", "%s is not running: the set %s would wait for it", c.Unit, c.Name)
			}
		case c.Cgroup != "":
			if _, err := cgroup2.ID(c.Cgroup); errors.Is(err, os.ErrNotExist) {
				warn("cgroup", "%s does not exist: the set %s would wait for it", c.Cgroup, c.Name)
			}
		}
		for _, name := range c.Join {
			if _, err := strconv.ParseUint(name, 10, 32); err == nil {
				continue
			}
			if _, err := user.Lookup(name); err != nil {
				warn("join", "no user %s on this machine: collective run would reject the set", name)
			}
		}
	}
	return out
}
