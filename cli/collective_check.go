package cli

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/cgroup2"
)

// withRootRemedy adds the remedy to a permission error.
func withRootRemedy(err error) error { return fmt.Errorf("%w: run it as root", err) }

// warnCollectives warns of cgroups, units and users that the connection sets of a configuration name and
// that do not exist on this machine. A set waits for a missing cgroup, but is rejected for a missing user.
func (a *app) warnCollectives(set config.Set) {
	for _, c := range set.Collectives {
		warn := func(key, format string, args ...any) {
			a.note("%s:%d: %s: warning: %s", c.File, c.Line, key, fmt.Sprintf(format, args...))
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
}
