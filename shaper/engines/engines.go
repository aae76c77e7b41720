// Package engines lists the engines that are built into the program, and finds what they cannot enforce of a
// configuration, or enforce only approximately. It is no engine, and chooses none: a configuration does.
package engines

import (
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/shaper/quantum"
)

// New returns all engines, by name.
func New() map[group.Engine]shaper.Shaper {
	return map[group.Engine]shaper.Shaper{
		group.HTB:     htb.New(),
		group.Quantum: quantum.New(),
	}
}

// checks are the engines' validations of a plan that do not depend on a device.
var checks = map[group.Engine]func(shaper.Plan) error{group.Quantum: quantum.Check}

// Check returns why an engine cannot enforce a plan on any device. An error with a method Key() string
// is about that key of the configuration; several errors are joined.
func Check(engine group.Engine, p shaper.Plan) error {
	check := checks[engine]
	if check == nil {
		return nil
	}
	return check(p)
}
