package cli

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"headgate/config"
	"headgate/internal/cgroup2"
)

// needRoot says what to do about a refusal of the kernel's.
func needRoot(err error) error { return fmt.Errorf("%w: run it as root", err) }

// warnCollectives tells of what the sets of a configuration name and this machine does not
// have. A cgroup may come later: its set waits for it. A user may not.
func (a *app) warnCollectives(set config.Set) {
	for _, c := range set.Collectives {
		warn := func(key, format string, args ...any) {
			a.note("%s:%d: %s: warning: %s", c.File, c.Line, key, fmt.Sprintf(format, args...))
		}
		switch {
		case c.Unit != "":
			if cgroup2.Unit(c.Unit) == "" {
				warn("unit", "%s does not run now: the set %s would wait for it", c.Unit, c.Name)
			}
		case c.Cgroup != "":
			if _, err := cgroup2.ID(c.Cgroup); errors.Is(err, os.ErrNotExist) {
				warn("cgroup", "there is no %s now: the set %s would wait for it", c.Cgroup, c.Name)
			}
		}
		for _, name := range c.Join {
			if _, err := strconv.ParseUint(name, 10, 32); err == nil {
				continue
			}
			if _, err := user.Lookup(name); err != nil {
				warn("join", "this machine has no user %s: collective run would refuse the set", name)
			}
		}
	}
}
